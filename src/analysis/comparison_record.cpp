// The comparison record: what docs/schema/comparison.schema.json asks for.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/compare.hpp"
#include "result/or_null.hpp"

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

Json set_json(const ResultSet& set) {
  std::vector<std::string> records;
  for (const MeasuredLaunch& launch : set.launches)
    if (std::ranges::find(records, launch.id) == records.end()) records.push_back(launch.id);
  return {{"label", set.label},
          {"path", set.path},
          {"records", records},
          {"revisions", distinct(set, &MeasuredLaunch::revision)},
          {"hosts", distinct(set, &MeasuredLaunch::host)},
          {"left_out", set.left_out}};
}

std::string unit_of(const std::string& metric, const MatchedPoint& point) {
  if (metric == "joules_per_sample") return "joules/sample";
  if (metric != "throughput") return "seconds";
  for (const auto& launches : point.launches)
    if (!launches.empty()) return launches.front()->unit;
  return "";
}

Json difference_json(Json& record, const std::vector<ResultSet>& sets, const MatchedPoint& point,
                     const CompareQuestions& questions, const Difference& difference) {
  const std::string counted = difference.in_process ? "repeats" : "launches";
  const std::size_t least = std::min(difference.base_repeats, difference.other_repeats);
  const auto unknown = [&](const char* key, const std::string& why) {
    record["unavailable"][std::string("points.") + key] = why;
  };
  if (!difference.p)
    for (const char* key : {"p", "p_adjusted"})
      unknown(key, "a single repeat of a set has no test");
  if (!difference.interval)
    for (const char* key : {"interval_percent", "interval_confidence"})
      unknown(key, fmt::format("too few {} (n={}; {} needed)", counted, least, kLeastRepeats));
  if (!difference.detectable_percent)
    unknown("minimum_detectable_percent",
            fmt::format("so few {} can show no difference (n={}; {} needed)", counted, least,
                        difference.repeats_needed));
  const auto& interval = difference.interval;
  return {{"set", sets[difference.set].label},
          {"ranks", point.ranks},
          {"settings", point.settings},
          {"unit", unit_of(questions.metric, point)},
          {"design", difference.paired ? "paired" : "two_sample"},
          {"repeat_unit", difference.in_process ? "in_process" : "launch"},
          {"base_repeats", difference.base_repeats},
          {"repeats", difference.other_repeats},
          {"base_value", difference.base_value},
          {"value", difference.other_value},
          {"difference_percent", difference.percent},
          {"interval_percent",
           interval ? Json{interval->interval.lo, interval->interval.hi} : Json(nullptr)},
          {"interval_confidence", interval ? Json(interval->confidence) : Json(nullptr)},
          {"hodges_lehmann_percent", difference.hodges_lehmann_percent},
          {"p", or_null(difference.p)},
          {"p_adjusted", or_null(difference.p_adjusted)},
          {"minimum_detectable_percent", or_null(difference.detectable_percent)},
          {"repeats_needed", difference.repeats_needed},
          {"verdict", to_string(difference.verdict)}};
}

/// Points that the base or another set does not have.
Json unmatched_json(const std::vector<ResultSet>& sets, const Matching& matching) {
  Json unmatched = Json::array();
  for (const MatchedPoint& point : matching.points)
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (!point.launches[i].empty()) continue;
      Json there = Json::array();
      for (std::size_t k = 0; k < sets.size(); ++k)
        if (!point.launches[k].empty()) there.push_back(sets[k].label);
      unmatched.push_back({{"ranks", point.ranks},
                           {"settings", point.settings},
                           {"missing_in", sets[i].label},
                           {"measured_in", there}});
    }
  return unmatched;
}

/// Variables that say how launches communicate; those of a job or of a place differ by themselves.
bool tells(const std::string& name) {
  for (const char* prefix : {"NCCL_", "UCX_", "GLOO_", "FI_", "HCOLL_", "SHARP_", "PSM2_"})
    if (name.starts_with(prefix)) return true;
  return name.starts_with("OMPI_MCA_") && name.find("btl") != name.npos;
}

std::map<std::string, std::set<std::string>> variables_of(const ResultSet& set) {
  std::map<std::string, std::set<std::string>> variables;
  for (const MeasuredLaunch& launch : set.launches)
    for (const auto& [name, value] : launch.environment)
      if (tells(name)) variables[name].insert(value);
  return variables;
}

/// What differs between the sets and is no key of a point.
std::vector<std::string> notes_of(const std::vector<ResultSet>& sets, const Matching& matching,
                                  const CompareQuestions& questions) {
  std::vector<std::string> notes = matching.notes;
  const auto ours = variables_of(sets.front());
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto theirs = variables_of(sets[i]);
    std::set<std::string> names;
    for (const auto& [name, values] : ours)
      if (!theirs.contains(name) || theirs.at(name) != values) names.insert(name);
    for (const auto& [name, values] : theirs)
      if (!ours.contains(name)) names.insert(name);
    for (const std::string& declared : questions.varied)
      if (declared.starts_with("env.")) names.erase(declared.substr(4));
    if (!names.empty())
      notes.push_back(fmt::format("variables differ between {} and {}: {}", sets[0].label,
                                  sets[i].label, fmt::join(names, ", ")));
  }
  for (const ResultSet& set : sets) {
    const Json revisions = distinct(set, &MeasuredLaunch::revision);
    if (revisions.size() > 1)
      notes.push_back(fmt::format("{} pools launches of {} builds; --by revision compares them",
                                  set.label, revisions.size()));
  }
  return notes;
}

}  // namespace

Json make_comparison_record(const std::vector<ResultSet>& sets, const Matching& matching,
                            const CompareQuestions& questions, const Comparison& comparison) {
  Json record = envelope("comparison", Status::ok);
  record["metric"] = questions.metric;
  record["better"] = questions.metric == "throughput" ? "higher" : "lower";
  record["alpha"] = questions.alpha;
  record["power"] = questions.power;
  record["varied"] = questions.varied;
  record["base"] = sets.front().label;
  record["sets"] = Json::array();
  for (const ResultSet& set : sets) record["sets"].push_back(set_json(set));
  record["points"] = Json::array();
  record["unmatched"] = unmatched_json(sets, matching);
  record["notes"] = notes_of(sets, matching, questions);
  record["warnings"] = comparison.warnings;
  record["unavailable"] = Json::object();
  for (const Difference& difference : comparison.differences)
    record["points"].push_back(
        difference_json(record, sets, matching.points[difference.point], questions, difference));
  return record;
}

}  // namespace scalemark
