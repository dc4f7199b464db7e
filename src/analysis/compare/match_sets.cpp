// See match_sets.hpp.
#include "analysis/compare/match_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/compare/matched_groups.hpp"
#include "analysis/compare/refuse_unmatched.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

/// [name]: how many have it.
std::map<std::string, std::size_t> count_names(const std::vector<Keyed>& launches) {
  std::map<std::string, std::size_t> counts;
  for (const Keyed& keyed : launches)
    for (const auto& [name, value] : keyed.keys) ++counts[name];
  return counts;
}

/// A variable that one sweep sets on purpose is looked up in the records of the others.
void fill_variable(std::vector<Keyed>& launches, const std::string& name) {
  const std::string variable = name.substr(kVariablePrefix.size());
  if (recorded_environment({{variable, "1"}}).empty()) return;
  for (Keyed& keyed : launches) {
    if (keyed.keys.contains(name)) continue;
    const auto found = keyed.launches.front()->environment.find(variable);
    keyed.keys[name] =
        found == keyed.launches.front()->environment.end() ? Json(nullptr) : Json(found->second);
  }
}

/// What some launches lack: dropped where a record does not tell it or nobody has set it, else it
/// is not set there.
void even_out(std::vector<Keyed>& launches, const std::string& name,
              std::vector<std::string>& notes) {
  bool unknown = name.starts_with(kVariablePrefix), all_default = true;
  for (const Keyed& keyed : launches) {
    if (keyed.keys.contains(name))
      all_default = all_default && keyed.launches.front()->defaults.contains(name);
    else
      unknown = unknown || keyed.launches.front()->unknown.contains(name);
  }
  if (unknown)
    notes.push_back(fmt::format("{} is not told by every record and was not compared", name));
  // Hosts and threads stand for how a plan has launched its ranks.
  const bool drop = unknown || all_default || is_launch_setting(name);
  for (Keyed& keyed : launches) {
    if (drop)
      keyed.keys.erase(name);
    else
      keyed.keys.try_emplace(name, nullptr);
  }
}

/// Gives every launch the same names: what some records do not tell is compared for none.
void make_alike(std::vector<Keyed>& launches, std::vector<std::string>& notes) {
  for (const auto& [name, count] : count_names(launches))
    if (name.starts_with(kVariablePrefix)) fill_variable(launches, name);
  for (const auto& [name, count] : count_names(launches))
    if (count < launches.size()) even_out(launches, name, notes);
}

void take_out(std::vector<Keyed>& launches, const std::vector<std::string>& varied) {
  std::vector<std::string> known;  // all launches have the same
  for (const auto& [name, value] : launches.front().keys) known.push_back(name);
  for (const std::string& name : varied) {
    if (std::ranges::find(known, name) == known.end())
      throw ConfigError(fmt::format("--varied: no record has a key {}{}", quote(name),
                                    did_you_mean(name, known)));
    for (Keyed& keyed : launches) {
      keyed.varied[name] = keyed.keys[name];
      keyed.keys.erase(name);
    }
  }
}

/// What tells points of a rank count apart.
std::vector<std::string> telling_names(const std::vector<KeyGroup>& groups) {
  std::set<std::string> names;
  std::map<Json, const Keys*> first;
  for (const KeyGroup& group : groups) {
    const auto [at, is_new] = first.try_emplace(ranks_of(group), group.keys);
    for (const std::string& name : differing_names(*group.keys, *at->second)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

MatchedPoint point_of(const KeyGroup& group, const std::vector<std::string>& telling) {
  MatchedPoint point;
  point.settings = Json::object();
  for (const std::string& name : telling) point.settings[name] = group.keys->at(name);
  for (const auto& pooled : group.launches) {
    auto& launches = point.launches.emplace_back();
    for (const Keyed* keyed : pooled)
      launches.insert(launches.end(), keyed->launches.begin(), keyed->launches.end());
    std::ranges::sort(launches);  // they lie in the order of their set
    if (!launches.empty()) point.ranks = launches.front()->ranks;
  }
  return point;
}

}  // namespace

std::string settings_text(const MatchedPoint& point) {
  std::string text;
  for (const auto& [name, value] : point.settings.items())
    text += fmt::format(" {}={}", name, plain_value(value));
  return text;
}

std::string plain_value(const Json& value) {
  if (value.is_null()) return "not set";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const std::string quoted = quote(text);
  return quoted == '"' + text + '"' ? text : quoted;
}

Matching match_sets(const std::vector<ResultSet>& sets, const std::vector<std::string>& varied) {
  Matching matching;
  std::vector<Keyed> launches = keyed_launches(sets);
  make_alike(launches, matching.notes);
  take_out(launches, varied);
  const std::vector<KeyGroup> groups = groups_of(launches, sets.size());
  refuse_unlike(sets, groups);
  refuse_disjoint(sets, groups);
  refuse_pooled(sets, groups);
  const auto telling = telling_names(groups);
  for (const KeyGroup& group : groups) matching.points.push_back(point_of(group, telling));
  std::ranges::stable_sort(matching.points, {}, &MatchedPoint::ranks);
  return matching;
}

}  // namespace scalemark
