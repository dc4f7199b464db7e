// See set_summary.hpp.
#include "analysis/compare/set_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "platform/platform.hpp"
#include "result/baseline.hpp"

namespace scalemark {
namespace {

/// The distinct values of a member of all launches.
template <typename Member>
Json distinct(const ResultSet& set, Member member) {
  std::set<std::string> values;
  for (const MeasuredLaunch& launch : set.launches)
    if (!(launch.*member).empty()) values.insert(launch.*member);
  return Json(values);
}

/// Variables that say how launches communicate; those of a job or of a place differ by themselves.
bool tells(const std::string& name) {
  if (name.starts_with("OMPI_MCA_")) return name.find("btl") != name.npos;
  return is_communication_variable(name);
}

std::map<std::string, std::set<std::string>> variables_of(const ResultSet& set) {
  std::map<std::string, std::set<std::string>> variables;
  for (const MeasuredLaunch& launch : set.launches)
    for (const auto& [name, value] : launch.environment)
      if (tells(name)) variables[name].insert(value);
  return variables;
}

/// How many launches others disturbed, and the worst of it.
void add_foreign_load(std::vector<std::string>& notes, const ResultSet& set) {
  const ForeignLoad* most = nullptr;
  int disturbed = 0;
  for (const MeasuredLaunch& launch : set.launches) {
    if (!launch.foreign || !launch.foreign->notable()) continue;
    ++disturbed;
    if (!most || launch.foreign->cpus > most->cpus) most = &*launch.foreign;
  }
  if (most)
    notes.push_back(fmt::format("{} of {} launches of {} were measured on a busy machine: {} of {}",
                                disturbed, set.launches.size(), set.label, most->words(),
                                most->host));
}

}  // namespace

Json set_json(const ResultSet& set) {
  std::vector<std::string> records;
  std::set<std::string> seen;
  for (const MeasuredLaunch& launch : set.launches)
    if (seen.insert(launch.id).second) records.push_back(launch.id);
  return {{"label", set.label},
          {"path", set.path},
          {"records", records},
          {"revisions", distinct(set, &MeasuredLaunch::revision)},
          {"hosts", distinct(set, &MeasuredLaunch::host)},
          {"left_out", set.left_out}};
}

std::vector<std::string> set_notes(const std::vector<ResultSet>& sets, const Matching& matching,
                                   const std::vector<std::string>& varied) {
  std::vector<std::string> notes = matching.notes;
  const auto ours = variables_of(sets.front());
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto theirs = variables_of(sets[i]);
    std::set<std::string> names;
    for (const auto& [name, values] : ours)
      if (!theirs.contains(name) || theirs.at(name) != values) names.insert(name);
    for (const auto& [name, values] : theirs)
      if (!ours.contains(name)) names.insert(name);
    for (const std::string& declared : varied)
      if (declared.starts_with("env.")) names.erase(declared.substr(4));
    if (!names.empty())
      notes.push_back(fmt::format("variables differ between {} and {}: {}", sets[0].label,
                                  sets[i].label, fmt::join(names, ", ")));
  }
  for (const ResultSet& set : sets) add_foreign_load(notes, set);
  for (const ResultSet& set : sets) {
    const Json revisions = distinct(set, &MeasuredLaunch::revision);
    if (revisions.size() > 1)
      notes.push_back(fmt::format("{} pools launches of {} builds; --by revision compares them",
                                  set.label, revisions.size()));
  }
  return notes;
}

std::vector<std::string> machine_notes(const std::vector<ResultSet>& sets) {
  std::vector<std::string> notes;
  for (std::size_t i = 1; i < sets.size(); ++i) {
    auto differences = machine_differences(sets[0], sets[i], kHardwareKeys);
    std::ranges::move(machine_differences(sets[0], sets[i], kSoftwareKeys),
                      std::back_inserter(differences));
    if (!differences.empty())
      notes.push_back(fmt::format("the machines of {} and {} differ in {}", sets[0].label,
                                  sets[i].label, fmt::join(differences, "; ")));
  }
  return notes;
}

}  // namespace scalemark
