// See match_sets.hpp.
#include "analysis/compare/match_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

using Keys = std::map<std::string, Json>;

struct Keyed {
  std::size_t set;
  const MeasuredLaunch* launch;
  Keys keys, varied;
};

std::vector<Keyed> keyed_launches(const std::vector<ResultSet>& sets) {
  std::vector<Keyed> all;
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (const MeasuredLaunch& launch : sets[i].launches)
      all.push_back({i, &launch, launch.keys, {}});
  return all;
}

std::set<std::string> names_of(const std::vector<Keyed>& launches) {
  std::set<std::string> names;
  for (const Keyed& keyed : launches)
    for (const auto& [name, value] : keyed.keys) names.insert(name);
  return names;
}

/// A variable that one sweep sets on purpose is looked up in the records of the others.
void fill_variable(std::vector<Keyed>& launches, const std::string& name) {
  const std::string variable = name.substr(kVariablePrefix.size());
  if (recorded_environment({{variable, "1"}}).empty()) return;
  for (Keyed& keyed : launches) {
    if (keyed.keys.contains(name)) continue;
    const auto found = keyed.launch->environment.find(variable);
    keyed.keys[name] =
        found == keyed.launch->environment.end() ? Json(nullptr) : Json(found->second);
  }
}

/// Gives every launch the same names: what some records do not tell is compared for none.
void make_alike(std::vector<Keyed>& launches, std::vector<std::string>& notes) {
  for (const std::string& name : names_of(launches)) {
    if (name.starts_with(kVariablePrefix)) fill_variable(launches, name);
    bool lacking = false, unknown = false, all_default = true;
    for (const Keyed& keyed : launches) {
      if (keyed.keys.contains(name)) {
        all_default = all_default && keyed.launch->defaults.contains(name);
        continue;
      }
      lacking = true;
      unknown =
          unknown || keyed.launch->unknown.contains(name) || name.starts_with(kVariablePrefix);
    }
    if (!lacking) continue;
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
}

void take_out(std::vector<Keyed>& launches, const std::vector<std::string>& varied) {
  const auto known = names_of(launches);
  for (const std::string& name : varied) {
    if (!known.contains(name))
      throw ConfigError(fmt::format("--varied: no record has a key {}{}", quote(name),
                                    did_you_mean(name, {known.begin(), known.end()})));
    for (Keyed& keyed : launches) {
      keyed.varied[name] = keyed.keys[name];
      keyed.keys.erase(name);
    }
  }
}

/// The values that a key has in a set; of its launches on `ranks` ranks, unless that is null.
std::vector<Json> values_of(const std::vector<Keyed>& launches, std::size_t set,
                            const std::string& name, const Json& ranks) {
  std::vector<Json> values;
  for (const Keyed& keyed : launches)
    if (keyed.set == set && (ranks.is_null() || keyed.keys.at("ranks") == ranks) &&
        std::ranges::find(values, keyed.keys.at(name)) == values.end())
      values.push_back(keyed.keys.at(name));
  return values;
}

/// Rank counts that both sets have; one null where they have none, or where ranks are varied.
std::vector<Json> common_ranks(const std::vector<Keyed>& launches, std::size_t set) {
  if (!launches.front().keys.contains("ranks")) return {nullptr};
  std::vector<Json> common;
  const auto theirs = values_of(launches, set, "ranks", nullptr);
  for (const Json& ranks : values_of(launches, 0, "ranks", nullptr))
    if (std::ranges::find(theirs, ranks) != theirs.end()) common.push_back(ranks);
  if (common.empty()) common.push_back(nullptr);
  return common;
}

std::string listed(const std::vector<Json>& values) {
  std::vector<std::string> words;
  for (const Json& value : values) words.push_back(plain_value(value));
  return join(words, ", ");
}

/// Refuses a set that differs from the first one in a key at all points of a rank count. Points
/// that one of two sets has more than the other are no fault.
void refuse_unlike(const std::vector<ResultSet>& sets, const std::vector<Keyed>& launches) {
  const auto all_names = names_of(launches);
  for (std::size_t i = 1; i < sets.size(); ++i) {
    std::map<std::string, std::string> differences;
    for (const Json& ranks : common_ranks(launches, i))
      for (const std::string& name : all_names) {
        const auto ours = values_of(launches, 0, name, ranks);
        const auto theirs = values_of(launches, i, name, ranks);
        if (std::ranges::find_first_of(ours, theirs) == ours.end())
          differences.try_emplace(name, fmt::format("{} ({}: {}; {}: {})", name, sets[0].label,
                                                    listed(ours), sets[i].label, listed(theirs)));
      }
    if (differences.empty()) continue;
    std::vector<std::string> names, sentences;
    for (const auto& [name, sentence] : differences) {
      names.push_back(name);
      sentences.push_back(sentence);
    }
    throw ConfigError(
        fmt::format("{} and {} measured different things: {}; where that is what you "
                    "compare, declare it: --varied {}",
                    sets[0].label, sets[i].label, join(sentences, "; "), join(names, ",")));
  }
}

std::vector<std::string> differing_names(const Keys& a, const Keys& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a)
    if (b.at(name) != value) names.push_back(name);
  return names;
}

/// Refuses a set without a point in common, naming what the nearest two points differ in.
void refuse_disjoint(const std::vector<ResultSet>& sets, const std::vector<Keyed>& launches) {
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const Keyed *ours = nullptr, *theirs = nullptr;
    std::vector<std::string> least;
    for (const Keyed& a : launches)
      for (const Keyed& b : launches) {
        if (a.set != 0 || b.set != i) continue;
        const auto names = differing_names(a.keys, b.keys);
        if (ours && names.size() >= least.size()) continue;
        ours = &a;
        theirs = &b;
        least = names;
      }
    if (least.empty()) continue;
    std::vector<std::string> differences;
    for (const std::string& name : least)
      differences.push_back(fmt::format("{} ({}: {}; {}: {})", name, sets[0].label,
                                        plain_value(ours->keys.at(name)), sets[i].label,
                                        plain_value(theirs->keys.at(name))));
    throw ConfigError(fmt::format("{} and {} have no point in common; the nearest differ in {}",
                                  sets[0].label, sets[i].label, join(differences, "; ")));
  }
}

/// Launches that are to be pooled must not differ in what is compared.
void refuse_pooled(const std::vector<ResultSet>& sets, const std::vector<Keyed>& launches) {
  std::map<std::pair<std::size_t, Keys>, const Keys*> seen;
  for (const Keyed& keyed : launches) {
    const auto [at, is_new] = seen.try_emplace({keyed.set, keyed.keys}, &keyed.varied);
    if (is_new || *at->second == keyed.varied) continue;
    const std::string name = differing_names(keyed.varied, *at->second).front();
    throw ConfigError(fmt::format(
        "{}: at {} ranks {} is {} and {}: these can't be one set; give each a set of its own, or "
        "one path and --by {}",
        sets[keyed.set].label, keyed.launch->ranks, name, plain_value(at->second->at(name)),
        plain_value(keyed.varied.at(name)), name));
  }
}

/// What tells points of a rank count apart.
std::vector<std::string> telling_names(const std::vector<Keyed>& launches) {
  const auto ranks_of = [](const Keyed& keyed) {
    const auto found = keyed.keys.find("ranks");
    return found == keyed.keys.end() ? Json(nullptr) : found->second;
  };
  std::set<std::string> names;
  std::map<Json, const Keys*> first;
  for (const Keyed& keyed : launches) {
    const auto [at, is_new] = first.try_emplace(ranks_of(keyed), &keyed.keys);
    for (const std::string& name : differing_names(keyed.keys, *at->second)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::vector<MatchedPoint> points_of(const std::vector<Keyed>& launches, std::size_t sets) {
  const auto names = telling_names(launches);
  std::map<Keys, MatchedPoint> points;
  for (const Keyed& keyed : launches) {
    MatchedPoint& point = points[keyed.keys];
    point.ranks = keyed.launch->ranks;
    point.launches.resize(sets);
    point.launches[keyed.set].push_back(keyed.launch);
    point.settings = Json::object();
    for (const std::string& name : names) point.settings[name] = keyed.keys.at(name);
  }
  std::vector<MatchedPoint> sorted;
  for (auto& [keys, point] : points) sorted.push_back(std::move(point));
  std::ranges::stable_sort(sorted, {}, &MatchedPoint::ranks);
  return sorted;
}

Json value_for_split(const MeasuredLaunch& launch, const std::string& key) {
  if (key == "revision") return launch.revision;
  if (key == "host") return launch.host;
  const auto found = launch.keys.find(key);
  return found == launch.keys.end() ? Json(nullptr) : found->second;
}

}  // namespace

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
  refuse_unlike(sets, launches);
  refuse_disjoint(sets, launches);
  refuse_pooled(sets, launches);
  matching.points = points_of(launches, sets.size());
  return matching;
}

std::vector<ResultSet> split_by(const ResultSet& set, const std::string& key,
                                const std::vector<std::string>& values) {
  std::map<Json, ResultSet> by_value;
  for (const MeasuredLaunch& launch : set.launches) {
    const Json value = value_for_split(launch, key);
    ResultSet& part = by_value[value];
    part.label = fmt::format("{}={}", key, plain_value(value));
    part.path = set.path;
    part.left_out = set.left_out;
    part.launches.push_back(launch);
  }
  std::vector<ResultSet> parts;
  std::vector<std::string> found;
  for (const auto& [value, part] : by_value) found.push_back(plain_value(value));
  if (by_value.size() < 2)
    throw ConfigError(
        fmt::format("--by {}: {} has one value of it only: {}", key, set.path, join(found, ", ")));
  for (const std::string& wanted : values) {
    const auto at = std::ranges::find(found, wanted);
    if (at == found.end())
      throw ConfigError(fmt::format("--by {}: {} has no {}; it has {}", key, set.path,
                                    quote(wanted), join(found, ", ")));
    parts.push_back(std::next(by_value.begin(), at - found.begin())->second);
  }
  if (values.empty())
    for (auto& [value, part] : by_value) parts.push_back(std::move(part));
  if (parts.size() < 2) throw ConfigError(fmt::format("--by {}: name two values or more", key));
  return parts;
}

}  // namespace scalemark
