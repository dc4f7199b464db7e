// Whether all ranks run with the same settings of their communication libraries.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/preflight.hpp"

namespace scalemark {

/// The settings of one rank: name -> value.
using Settings = std::map<std::string, std::string>;

/// Those that are not the same on all ranks, by name: their values in the order of the first rank
/// that has each, with those ranks. `of_ranks`: in the ranks' order.
std::vector<record::DifferingSetting> differing_settings(const std::vector<Settings>& of_ranks);

/// Open MPI's parameters have the names of mca_parameters(), variables of the environment their
/// own, in capitals.
record::CommunicationSettings settings_of(const std::vector<Settings>& of_ranks);

/// What of a process's environment sets communication (is_communication_variable()). `recorded`:
/// see recorded_environment().
Settings communication_settings(const std::map<std::string, std::string>& recorded);

}  // namespace scalemark
