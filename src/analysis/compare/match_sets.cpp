// Finds which launches of several sets measured the same. What tells launches apart is hashed:
// comparing it value by value, launch against launch, is what ten thousand records would wait for.
#include "analysis/compare/match_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "result/result_set.hpp"

namespace scalemark {
namespace {

using Keys = std::map<std::string, Json>;

/// Launches of a set that tell the same, with the keys that are compared and those that are
/// declared to differ.
struct Keyed {
  std::size_t set;
  std::vector<const MeasuredLaunch*> launches;  ///< in the order of the set
  Keys keys, varied;
};

/// Launches with the same keys, whatever set they are of.
struct KeyGroup {
  const Keys* keys = nullptr;
  std::vector<std::vector<const Keyed*>> launches;  ///< [set]
};

/// Equal where two values are: 1 and 1.0 are written alike.
std::string written(const Keys& keys) {
  std::string text;
  for (const auto& [name, value] : keys) {
    const bool whole = value.is_number_float() && std::trunc(value.get<double>()) == value &&
                       std::abs(value.get<double>()) < 1e15;
    text += name + '=' + (whole ? Json(value.get<std::int64_t>()) : value).dump() + '\n';
  }
  return text;
}

std::size_t hash_of(const Keys& keys) {
  std::size_t hash = keys.size();
  for (const auto& [name, value] : keys) hash = 31 * hash + std::hash<Json>()(value);
  return hash;
}

bool tell_the_same(const MeasuredLaunch& a, const MeasuredLaunch& b) {
  return a.keys == b.keys && a.defaults == b.defaults && a.unknown == b.unknown &&
         a.environment == b.environment;
}

/// By set and first launch.
std::vector<Keyed> keyed_launches(const std::vector<ResultSet>& sets) {
  std::vector<Keyed> all;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::unordered_multimap<std::size_t, std::size_t> places;
    for (const MeasuredLaunch& launch : sets[i].launches) {
      const std::size_t hash = hash_of(launch.keys);
      const auto [begin, end] = places.equal_range(hash);
      const auto alike = std::find_if(begin, end, [&](const auto& entry) {
        return tell_the_same(*all[entry.second].launches.front(), launch);
      });
      if (alike != end) {
        all[alike->second].launches.push_back(&launch);
        continue;
      }
      places.emplace(hash, all.size());
      all.push_back({i, {&launch}, launch.keys, {}});
    }
  }
  return all;
}

/// In the order of the keys' values. All launches have the same names of keys; the result points
/// into them.
std::vector<KeyGroup> groups_of(const std::vector<Keyed>& launches, std::size_t sets) {
  std::unordered_map<std::string, std::size_t> places;
  std::vector<KeyGroup> groups;
  for (const Keyed& keyed : launches) {
    const auto [at, is_new] = places.try_emplace(written(keyed.keys), groups.size());
    if (is_new) groups.push_back({&keyed.keys, std::vector<std::vector<const Keyed*>>(sets)});
    groups[at->second].launches[keyed.set].push_back(&keyed);
  }
  std::ranges::sort(groups, [](const KeyGroup& a, const KeyGroup& b) { return *a.keys < *b.keys; });
  return groups;
}

/// Null where ranks are varied.
Json ranks_of(const KeyGroup& group) {
  const auto found = group.keys->find("ranks");
  return found == group.keys->end() ? Json(nullptr) : found->second;
}

/// Names of keys with other values; both have the same names.
std::vector<std::string> differing_names(const Keys& a, const Keys& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a)
    if (b.at(name) != value) names.push_back(name);
  return names;
}

constexpr std::size_t kMostListed = 6;     ///< values of a key in a message
constexpr std::size_t kMostNearest = 100;  ///< points of a set that the nearest is looked for among

using ByRanks = std::map<Json, std::set<Json>>;

/// The values that a key has in a set, by rank count.
ByRanks values_of(const std::vector<KeyGroup>& groups, std::size_t set, const std::string& name) {
  ByRanks values;
  for (const KeyGroup& group : groups)
    if (!group.launches[set].empty()) values[ranks_of(group)].insert(group.keys->at(name));
  return values;
}

ByRanks over_all_ranks(const ByRanks& values) {
  ByRanks all;
  for (const auto& [ranks, some] : values) all[nullptr].insert(some.begin(), some.end());
  return all;
}

/// Keeps the rank counts that both have; where there are none, all of them as one.
void keep_common_ranks(ByRanks& a, ByRanks& b) {
  const bool common =
      std::ranges::any_of(a, [&](const auto& one) { return b.contains(one.first); });
  if (!common) {
    a = over_all_ranks(a);
    b = over_all_ranks(b);
  }
  std::erase_if(a, [&](const auto& one) { return !b.contains(one.first); });
}

bool have_common(const std::set<Json>& a, const std::set<Json>& b) {
  return std::ranges::any_of(a, [&](const Json& value) { return b.contains(value); });
}

std::string listed(const std::set<Json>& values) {
  std::vector<std::string> words;
  for (const Json& value : values) {
    if (words.size() == kMostListed) {
      words.push_back(fmt::format("and {} more", values.size() - kMostListed));
      break;
    }
    words.push_back(plain_value(value));
  }
  return join(words, ", ");
}

/// "precision (a: fp32; b: bf16)" of a key that a set and the first one have no value of in common
/// at some rank count; empty where they have.
std::string unlike(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups,
                   std::size_t set, const std::string& name) {
  ByRanks ours = values_of(groups, 0, name), theirs = values_of(groups, set, name);
  keep_common_ranks(ours, theirs);
  for (const auto& [ranks, values] : ours)
    if (!have_common(values, theirs.at(ranks)))
      return fmt::format("{} ({}: {}; {}: {})", name, sets[0].label, listed(values),
                         sets[set].label, listed(theirs.at(ranks)));
  return "";
}

/// Points of a set, no more than are worth looking at for the nearest.
std::vector<const Keys*> some_points(const std::vector<KeyGroup>& groups, std::size_t set) {
  std::vector<const Keys*> points;
  for (const KeyGroup& group : groups)
    if (!group.launches[set].empty() && points.size() < kMostNearest) points.push_back(group.keys);
  return points;
}

/// ConfigError where a set differs from the first one in a key at all points of a rank count.
/// Points that one of two sets has more than the other are no fault.
void refuse_unlike(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups) {
  for (std::size_t i = 1; i < sets.size(); ++i) {
    std::vector<std::string> names, sentences;
    for (const auto& [name, value] : *groups.front().keys)
      if (const std::string sentence = unlike(sets, groups, i, name); !sentence.empty()) {
        names.push_back(name);
        sentences.push_back(sentence);
      }
    if (names.empty()) continue;
    throw ConfigError(
        fmt::format("{} and {} measured different things: {}; where that is what you "
                    "compare, declare it: --varied {}",
                    sets[0].label, sets[i].label, join(sentences, "; "), join(names, ",")));
  }
}

/// ConfigError where a set has no point in common with the first one, naming what the nearest two
/// differ in.
void refuse_disjoint(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups) {
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto in_both = [&](const KeyGroup& group) {
      return !group.launches[0].empty() && !group.launches[i].empty();
    };
    if (std::ranges::any_of(groups, in_both)) continue;
    const Keys *ours = nullptr, *theirs = nullptr;
    std::vector<std::string> least;
    for (const Keys* a : some_points(groups, 0))
      for (const Keys* b : some_points(groups, i)) {
        const auto names = differing_names(*a, *b);
        if (ours && names.size() >= least.size()) continue;
        ours = a;
        theirs = b;
        least = names;
      }
    std::vector<std::string> differences;
    for (const std::string& name : least)
      differences.push_back(fmt::format("{} ({}: {}; {}: {})", name, sets[0].label,
                                        plain_value(ours->at(name)), sets[i].label,
                                        plain_value(theirs->at(name))));
    throw ConfigError(fmt::format("{} and {} have no point in common; the nearest differ in {}",
                                  sets[0].label, sets[i].label, join(differences, "; ")));
  }
}

/// ConfigError where launches that are to be pooled differ in what is compared.
void refuse_pooled(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups) {
  for (const KeyGroup& group : groups)
    for (const auto& pooled : group.launches)
      for (const Keyed* keyed : pooled) {
        const Keyed& first = *pooled.front();
        if (keyed->varied == first.varied) continue;
        const std::string name = differing_names(keyed->varied, first.varied).front();
        throw ConfigError(fmt::format(
            "{}: at {} ranks {} is {} and {}: these can't be one set; give each a set of its own, "
            "or one path and --by {}",
            sets[keyed->set].label, keyed->launches.front()->ranks, name,
            plain_value(first.varied.at(name)), plain_value(keyed->varied.at(name)), name));
      }
}

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

/// Whether nobody chose the value in any launch of the group.
bool is_default(const KeyGroup& group, const std::string& name) {
  for (const auto& pooled : group.launches)
    for (const Keyed* keyed : pooled)
      if (!keyed->launches.front()->defaults.contains(name)) return false;
  return true;
}

/// Whether every group has its own values of these keys among those of its rank count.
bool tell_apart(const std::vector<KeyGroup>& groups, const std::set<std::string>& names) {
  std::set<Json> seen;
  return std::ranges::all_of(groups, [&](const KeyGroup& group) {
    Json values = Json::array({ranks_of(group)});
    for (const std::string& name : names) values.push_back(group.keys->at(name));
    return seen.insert(std::move(values)).second;
  });
}

/// What tells points of a rank count apart.
std::vector<std::string> telling_names(const std::vector<KeyGroup>& groups) {
  std::set<std::string> names;
  std::map<Json, const Keys*> first;
  for (const KeyGroup& group : groups) {
    const auto [at, is_new] = first.try_emplace(ranks_of(group), group.keys);
    for (const std::string& name : differing_names(*group.keys, *at->second)) names.insert(name);
  }
  // Defaults follow from what was chosen, as a learning rate does from the model.
  std::set<std::string> chosen = names;
  for (const std::string& name : names)
    if (std::ranges::all_of(groups, [&](const KeyGroup& group) { return is_default(group, name); }))
      chosen.erase(name);
  const std::set<std::string>& telling = tell_apart(groups, chosen) ? chosen : names;
  return {telling.begin(), telling.end()};
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

std::map<std::string, std::string> changed_defaults(const ResultSet& base, const ResultSet& fresh) {
  std::map<std::string, std::string> changed;
  const MeasuredLaunch &before = base.launches.front(), &after = fresh.launches.front();
  for (const std::string& name : after.defaults) {
    const auto was = before.keys.find(name), is = after.keys.find(name);
    if (!before.defaults.contains(name) || was == before.keys.end() || is == after.keys.end() ||
        was->second == is->second)
      continue;
    changed[name] =
        fmt::format("the default of {} is {} in {} and {} in {}: it is part of the build", name,
                    plain_value(was->second), base.label, plain_value(is->second), fresh.label);
  }
  return changed;
}

std::string common_unit(const std::vector<const MeasuredLaunch*>& launches,
                        const std::string& metric) {
  if (launches.empty()) return "";
  const MeasuredLaunch& first = *launches.front();
  for (const MeasuredLaunch* launch : launches)
    if (launch->unit != first.unit)
      throw ConfigError(fmt::format(
          "{} counts {}, but {} counts {}: {} of unlike units can't be compared; compare what "
          "counts the same, or a metric without it, such as efficiency or exposed_seconds",
          first.path.string(), first.unit, launch->path.string(), launch->unit, metric));
  return first.unit;
}

std::string common_unit(const MatchedPoint& point) {
  std::vector<const MeasuredLaunch*> launches;
  for (const auto& of_set : point.launches)
    launches.insert(launches.end(), of_set.begin(), of_set.end());
  return common_unit(launches);
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

namespace {

/// A preflight says little of a machine so much later, in seconds.
constexpr double kOldPreflight = 86400;

void warn_of_copies(std::vector<std::string>& warnings, const ResultSet& set) {
  if (set.copies == 0) return;
  warnings.push_back(fmt::format(
      "{} of {} launches of {} equal another one to the last digit: copies are no measurements and "
      "were counted once",
      set.copies, set.launches.size() + set.copies, set.label));
}

std::set<Json> hosts_of(const ResultSet& set) {
  std::set<Json> hosts;
  for (const MeasuredLaunch& launch : set.launches)
    if (!launch.host.empty()) hosts.insert(launch.host);
  return hosts;
}

/// Where no host of a set is one of the first set.
void warn_of_hosts(std::vector<std::string>& warnings, const std::vector<ResultSet>& sets) {
  const std::set<Json> first = hosts_of(sets.front());
  std::vector<std::string> others;
  for (const ResultSet& set : sets)
    if (const std::set<Json> hosts = hosts_of(set);
        !first.empty() && !hosts.empty() && !have_common(first, hosts))
      others.push_back(fmt::format("{}: {}", set.label, listed(hosts)));
  if (others.empty()) return;
  if (others.size() > kMostListed) {
    others.resize(kMostListed);
    others.push_back("...");
  }
  warnings.push_back(fmt::format(
      "the sets come from different hosts ({}: {}; {}): how these differ can't be told from the "
      "build, though their hardware may read alike; measure both builds on the same hosts "
      "(scalemark gate PLAN --base --new)",
      sets.front().label, listed(first), join(others, "; ")));
}

/// How much older than a launch of a set its preflight is at most, and when the last one was.
struct Preflights {
  double age = 0, last = 0;
  std::size_t old = 0, named = 0;
};

Preflights preflights_of(const ResultSet& set) {
  Preflights found;
  for (const MeasuredLaunch& launch : set.launches) {
    const double made = utc_seconds(launch.preflight_at);
    const double age = utc_seconds(launch.started_at) - made;
    if (!std::isfinite(age)) continue;
    ++found.named;
    found.old += age > kOldPreflight ? 1 : 0;
    found.age = std::max(found.age, age);
    found.last = std::max(found.last, made);
  }
  return found;
}

void warn_of_preflights(std::vector<std::string>& warnings, const std::vector<ResultSet>& sets) {
  const Preflights first = preflights_of(sets.front());
  for (const ResultSet& set : sets) {
    const Preflights found = preflights_of(set);
    if (found.old > 0)
      warnings.push_back(fmt::format(
          "{} of {} launches of {} name a preflight that is up to {:.0f} days older than they are: "
          "it says little of the machine then; repeat scalemark preflight",
          found.old, set.launches.size(), set.label, std::ceil(found.age / 86400)));
    if (first.named > 0 && found.named > 0 && std::abs(found.last - first.last) > kOldPreflight)
      warnings.push_back(fmt::format(
          "the preflights of {} and {} were made {:.0f} days apart: they do not say that the "
          "machine was the same",
          sets.front().label, set.label, std::abs(found.last - first.last) / 86400));
  }
}

}  // namespace

std::vector<std::string> set_warnings(const std::vector<ResultSet>& sets, bool by_host) {
  std::vector<std::string> warnings;
  for (const ResultSet& set : sets) warn_of_copies(warnings, set);
  if (!by_host) warn_of_hosts(warnings, sets);
  warn_of_preflights(warnings, sets);
  return warnings;
}

namespace {

using SplitValues = std::vector<Json>;

Json value_for_split(const MeasuredLaunch& launch, const std::string& key) {
  if (key == "revision") return launch.revision;
  if (key == "host") return launch.host;
  const auto found = launch.keys.find(key);
  return found == launch.keys.end() ? Json(nullptr) : found->second;
}

SplitValues values_for_split(const MeasuredLaunch& launch, const std::vector<std::string>& keys) {
  SplitValues values;
  for (const std::string& key : keys) values.push_back(value_for_split(launch, key));
  return values;
}

std::string split_label(const std::vector<std::string>& keys, const SplitValues& values) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < keys.size(); ++i)
    words.push_back(keys[i] + "=" + plain_value(values[i]));
  return join(words, " ");
}

std::string first_start(const ResultSet& set) {
  return std::ranges::min_element(set.launches, {}, &MeasuredLaunch::started_at)->started_at;
}

/// Whether sets in the order of their commits were rather measured in that order than against it.
bool measured_in_order(const std::vector<ResultSet>& parts) {
  int later = 0;
  for (std::size_t i = 1; i < parts.size(); ++i)
    later += first_start(parts[i]) < first_start(parts[i - 1]) ? -1 : 1;
  return later >= 0;
}

/// By time of commit. Those that do not tell it stand among the others where their first start
/// does, in the direction in which the others were measured; alone, by first start.
void sort_by_age(std::vector<ResultSet>& parts) {
  const auto told = [](const ResultSet& part) {
    return !part.launches.front().committed_at.empty();
  };
  std::ranges::stable_sort(parts, {}, first_start);
  const auto untold = std::stable_partition(parts.begin(), parts.end(), told);
  std::vector<ResultSet> others(std::make_move_iterator(untold),
                                std::make_move_iterator(parts.end()));
  parts.erase(untold, parts.end());
  std::ranges::stable_sort(
      parts, {}, [](const ResultSet& part) { return part.launches.front().committed_at; });
  const bool in_order = measured_in_order(parts);
  if (!in_order) std::ranges::reverse(others);
  for (ResultSet& other : others) {
    const std::string start = first_start(other);
    const auto after = std::ranges::find_if(parts, [&](const ResultSet& part) {
      return in_order ? first_start(part) > start : first_start(part) < start;
    });
    parts.insert(after, std::move(other));
  }
}

/// Gives a part that is one build its own failures, not those of all builds.
void take_failures(ResultSet& part, const ResultSet& whole) {
  const auto failed = whole.failed_of.find(part.launches.front().revision);
  if (failed == whole.failed_of.end()) return;
  part.failed_of.insert(*failed);
  part.failed = failed->second.count;
}

/// Those whose value is listed, in the order of the list.
std::vector<ResultSet> listed_parts(const std::vector<ResultSet>& parts, const std::string& key,
                                    const std::vector<std::string>& values) {
  std::vector<std::string> labels;
  for (const ResultSet& part : parts) labels.push_back(part.label);
  std::vector<ResultSet> chosen;
  for (const std::string& wanted : values) {
    const auto at = std::ranges::find(labels, key + "=" + wanted);
    if (at == labels.end())
      throw ConfigError(fmt::format("--by {}: {} has no {}; it has {}", key, parts.front().path,
                                    quote(wanted), join(labels, ", ")));
    chosen.push_back(parts[static_cast<std::size_t>(at - labels.begin())]);
  }
  if (chosen.size() < 2) throw ConfigError(fmt::format("--by {}: name two values or more", key));
  return chosen;
}

}  // namespace

std::vector<ResultSet> split_by(const ResultSet& set, const std::vector<std::string>& keys,
                                const std::vector<std::string>& values) {
  const std::string all_keys = join(keys, ",");
  if (keys.size() > 1 && !values.empty())
    throw ConfigError(fmt::format(
        "--by {}: values can be listed of one key only; leave them out, or divide by one key",
        all_keys));
  std::map<SplitValues, ResultSet> by_values;
  for (const MeasuredLaunch& launch : set.launches) {
    const SplitValues found = values_for_split(launch, keys);
    ResultSet& part = by_values[found];
    part.label = split_label(keys, found);
    part.path = set.path;
    part.left_out = set.left_out;
    part.launches.push_back(launch);
  }
  const bool by_build = keys == std::vector<std::string>{"revision"};
  std::vector<ResultSet> parts;
  for (auto& [found, part] : by_values) {
    if (by_build) take_failures(part, set);
    parts.push_back(std::move(part));
  }
  if (parts.size() < 2)
    throw ConfigError(fmt::format("--by {}: {} has one value of it only: {}", all_keys, set.path,
                                  parts.front().label));
  if (keys.front() == "revision") sort_by_age(parts);
  return values.empty() ? parts : listed_parts(parts, keys.front(), values);
}

}  // namespace scalemark
