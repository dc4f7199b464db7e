// A baseline: the launches of a result set in one small file that is kept beside the code, with the
// machine that it holds for and a checksum, so that no later verdict rests on something else.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/baseline.hpp"
#include "result/result_set.hpp"

namespace scalemark {

/// A record of kind baseline. `previous`: the one that it replaces; `warnings`: of its launches.
/// ConfigError where the set was measured by several builds or on unlike machines.
Json make_baseline_record(const ResultSet& set,
                          const std::optional<record::PreviousBaseline>& previous = {},
                          const std::vector<std::string>& warnings = {});

/// ResultError where the checksum does not fit the content.
record::BaselineReference baseline_reference(const Json& baseline,
                                             const std::filesystem::path& path);

/// The launches that a baseline holds. ResultError where it was changed by hand or is not as its
/// schema says.
std::vector<MeasuredLaunch> launches_of_baseline(const Json& baseline,
                                                 const std::filesystem::path& path);

/// "cpu_model (a: ...; b: ...)" for each of `names` in which the machines of two sets differ; what
/// one of them does not tell is left out.
std::vector<std::string> machine_differences(const ResultSet& a, const ResultSet& b,
                                             std::span<const char* const> names);

}  // namespace scalemark
