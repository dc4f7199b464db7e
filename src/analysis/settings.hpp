// Whether all ranks run with the same settings of their communication libraries.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/records.hpp"

namespace scalemark {

/// Of one rank: name -> value.
using Settings = std::map<std::string, std::string>;

/// A setting that is not the same on all ranks: its values in the order of the first rank that has
/// each, with those ranks, ascending; no value: not set there.
struct SettingDifference {
  struct Value {
    std::optional<std::string> value;
    std::vector<int> ranks;
  };
  std::string name;
  std::vector<Value> values;
};

/// `of_ranks` in the ranks' order; sorted by name.
std::vector<SettingDifference> differing_settings(const std::vector<Settings>& of_ranks);

/// The record's `settings`. Open MPI's parameters have the names of mca_parameters(), variables of
/// the environment their own, in capitals. Adds the reasons of its nulls to `unavailable`.
Json settings_json(const std::vector<Settings>& of_ranks, Json& unavailable);

/// What of a process's environment sets communication (is_communication_variable()). `recorded`:
/// see recorded_environment().
Settings communication_settings(const std::map<std::string, std::string>& recorded);

}  // namespace scalemark
