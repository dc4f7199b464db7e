// See swept_curves.hpp.
#include "analysis/scaling/swept_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "analysis/compare/match_sets.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Runs = std::vector<const SweptRun*>;
using KeyValues = std::map<std::string, Json>;

/// Launches that make a curve, the values that tell it from others, and its baselines.
struct CurveRuns {
  KeyValues keys;
  Runs runs, baselines;
};

/// Keys by which curves are named before any others.
constexpr std::array kNamedFirst{"model",      "precision",         "reducer",       "communicator",
                                 "batch_size", "global_batch_size", "build.revision"};
/// Their value alone tells what it is of.
constexpr std::array kSpeakingValues{"model", "precision", "reducer", "communicator"};
constexpr std::size_t kLongestName = 120;

Json value_at(const KeyValues& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? Json() : found->second;
}

std::set<int> ranks_of(const Runs& runs) {
  std::set<int> ranks;
  for (const SweptRun* run : runs) ranks.insert(run->ranks);
  return ranks;
}

bool several_at_a_rank_count(const Runs& runs, const std::string& name) {
  std::map<int, Json> first;
  for (const SweptRun* run : runs)
    if (value_at(run->placed, name) !=
        first.try_emplace(run->ranks, value_at(run->placed, name)).first->second)
      return true;
  return false;
}

/// What may change with the ranks makes curves of its own where one rank count has several of it.
void split_placed(CurveRuns curve, std::vector<CurveRuns>& all) {
  for (const auto& [name, value] : curve.runs.front()->placed) {
    if (name == "point" || !several_at_a_rank_count(curve.runs, name)) continue;
    std::map<Json, CurveRuns> parts;
    for (const SweptRun* run : curve.runs) parts[value_at(run->placed, name)].runs.push_back(run);
    for (const SweptRun* run : curve.baselines)
      if (const auto part = parts.find(value_at(run->placed, name)); part != parts.end())
        part->second.baselines.push_back(run);
    for (auto& [of_part, part] : parts) {
      part.keys = curve.keys;
      part.keys[name] = of_part;
      split_placed(std::move(part), all);
    }
    return;
  }
  all.push_back(std::move(curve));
}

/// One rank communicates with nobody: what was asked of its communicator makes no difference where
/// that is one thing.
const Runs& with_one_rank(const std::map<Json, Runs>& ones, const Json& communicator) {
  static const Runs kNone;
  const auto own = ones.find(ones.size() == 1 ? ones.begin()->first : communicator);
  return own == ones.end() ? kNone : own->second;
}

/// Launches of several ranks without communication, by what they have in common with those that
/// they are the baselines of: whatever sums gradients has nothing to do in them.
class Baselines {
 public:
  explicit Baselines(const std::vector<SweptRun>& runs) {
    for (const SweptRun& run : runs) {
      if (run.ranks == 1) continue;
      Place& place = places_[without_reducer(run.same)];
      if (run.communicator == "none")
        place.runs.push_back(&run);
      else
        place.serve = true;
    }
  }

  /// Empty where nothing of these keys communicates: they are curves themselves then.
  Runs of(const KeyValues& keys) const {
    const auto place = places_.find(without_reducer(keys));
    return place != places_.end() && place->second.serve ? place->second.runs : Runs();
  }

 private:
  struct Place {
    Runs runs;
    bool serve = false;
  };
  static KeyValues without_reducer(KeyValues keys) {
    keys.erase("reducer");
    return keys;
  }
  std::map<KeyValues, Place> places_;
};

/// A curve each communicator.
void split_communicators(const KeyValues& keys, const Runs& runs, const Runs& baselines,
                         std::vector<CurveRuns>& all) {
  std::map<Json, Runs> ones, more;
  for (const SweptRun* run : runs)
    if (run->ranks == 1)
      ones[run->communicator].push_back(run);
    else if (baselines.empty() || run->communicator != "none")
      more[run->communicator].push_back(run);
  if (more.empty() && !ones.empty()) more[ones.begin()->first];
  for (const auto& [communicator, own] : more) {
    CurveRuns curve{keys, own, baselines};
    std::ranges::copy(with_one_rank(ones, communicator), std::back_inserter(curve.runs));
    curve.keys["communicator"] = communicator;
    split_placed(std::move(curve), all);
  }
}

/// In the order of their first launches.
std::vector<CurveRuns> groups_of(const std::vector<SweptRun>& runs) {
  const Baselines baselines(runs);
  std::map<KeyValues, Runs> alike;
  for (const SweptRun& run : runs) alike[run.same].push_back(&run);
  std::vector<CurveRuns> all;
  for (const auto& [keys, own] : alike) split_communicators(keys, own, baselines.of(keys), all);
  for (CurveRuns& curve : all)
    for (Runs* some : {&curve.runs, &curve.baselines})
      std::ranges::stable_sort(
          *some, {}, [](const SweptRun* run) { return std::pair(run->ranks, run->entry.repeat); });
  std::ranges::sort(all, {}, [](const CurveRuns& curve) { return std::ranges::min(curve.runs); });
  return all;
}

std::string words_of(const CurveRuns& curve) {
  return settings_title(curve.runs.front()->entry.settings);
}

/// Why launches make no curve; empty where they do.
std::string why_none(const CurveRuns& curve) {
  for (const Runs* some : {&curve.runs, &curve.baselines}) {
    if (!some->empty() && several_at_a_rank_count(*some, "point"))
      return fmt::format(
          "{}: points of its rank counts differ in something that no setting of the plan tells (a "
          "plan that was changed between two sweeps into one folder): give each an --output",
          words_of(curve));
    std::map<int, const SweptRun*> first;
    for (const SweptRun* run : *some)
      for (const auto& [name, value] : run->achieved)
        if (const Json other =
                value_at(first.try_emplace(run->ranks, run).first->second->achieved, name);
            other != value)
          return fmt::format("{}: launches of {} ranks differ in {} ({}; {})", words_of(curve),
                             run->ranks, name, plain_value(other), plain_value(value));
  }
  if (const auto ranks = ranks_of(curve.runs); ranks.size() < 2)
    return fmt::format("{}: launches of {} alone; a curve takes two rank counts", words_of(curve),
                       counted(static_cast<std::size_t>(*ranks.begin()), "rank"));
  return "";
}

using KeyNames = std::vector<std::string>;

std::vector<Json> values_of(const CurveRuns& curve, const KeyNames& names) {
  std::vector<Json> values;
  for (const std::string& name : names) values.push_back(value_at(curve.keys, name));
  return values;
}

std::size_t told_apart(const std::vector<CurveRuns>& curves, const KeyNames& names) {
  std::set<std::vector<Json>> values;
  for (const CurveRuns& curve : curves) values.insert(values_of(curve, names));
  return values.size();
}

/// Whose values tell all curves apart, without any that tells nothing that those before it do not.
KeyNames telling_keys(const std::vector<CurveRuns>& curves) {
  KeyNames order(kNamedFirst.begin(), kNamedFirst.end());
  for (const CurveRuns& curve : curves)
    for (const auto& [name, value] : curve.keys)
      if (std::ranges::find(order, name) == order.end()) order.push_back(name);
  KeyNames chosen;
  for (const std::string& name : order) {
    KeyNames more = chosen;
    more.push_back(name);
    if (told_apart(curves, more) > told_apart(curves, chosen)) chosen = more;
  }
  return chosen;
}

/// "bf16", "b16", "NCCL_ALGO=Ring", "revision=1e4bd487b6be"; what no file name has is an
/// underscore.
std::string name_part(const std::string& key, const Json& value) {
  std::string text = plain_value(value);
  if (key.ends_with("batch_size") && !key.starts_with("micro"))
    text = "b" + text;
  else if (std::ranges::find(kSpeakingValues, key) == kSpeakingValues.end())
    text = key.substr(key.find('.') == key.npos ? 0 : key.find('.') + 1) + "=" + text;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._+=,", c)) c = '_';
  return text;
}

void name_them(std::vector<SweptCurve>& curves, const std::vector<CurveRuns>& groups) {
  const KeyNames keys = telling_keys(groups);
  std::set<std::string> taken;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::vector<Json> values = values_of(groups[i], keys);
    KeyNames parts;
    for (std::size_t k = 0; k < keys.size(); ++k) parts.push_back(name_part(keys[k], values[k]));
    std::string name = join(parts, "-").substr(0, kLongestName);
    if (!taken.insert(name).second) taken.insert(name += fmt::format("-{}", i + 1));
    curves[i].name = name;
  }
}

/// That all points of a curve have, but for its ranks.
Json common_settings(const Runs& runs) {
  Json common = Json::object();
  for (const auto& [name, value] : runs.front()->entry.settings.items()) {
    const auto has_it = [&name = name, &value = value](const SweptRun* run) {
      const Json& own = run->entry.settings;
      return own.contains(name) && own[name] == value;
    };
    if (name != "ranks" && std::ranges::all_of(runs, has_it)) common[name] = value;
  }
  return common;
}

}  // namespace

std::set<int> SweptCurve::ranks() const { return ranks_of(runs); }

SweptCurves swept_curves(const std::vector<SweptRun>& runs) {
  SweptCurves made;
  std::vector<CurveRuns> groups;
  for (CurveRuns& group : groups_of(runs)) {
    const std::string why = why_none(group);
    if (why.empty())
      groups.push_back(std::move(group));
    else
      made.left_out.push_back(why);
  }
  for (const CurveRuns& group : groups)
    made.curves.push_back({"", common_settings(group.runs), group.runs, group.baselines});
  name_them(made.curves, groups);
  return made;
}

}  // namespace scalemark
