// The comparison record: what docs/schema/comparison.schema.json asks for.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/set_summary.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

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
    add_reason(record, std::string("points.") + key, why);
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
          {"interval_percent", interval ? Json(interval->interval) : Json(nullptr)},
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
  record["notes"] = set_notes(sets, matching, questions.varied);
  record["warnings"] = comparison.warnings;
  record["unavailable"] = Json::object();
  for (const Difference& difference : comparison.differences)
    record["points"].push_back(
        difference_json(record, sets, matching.points[difference.point], questions, difference));
  return record;
}

}  // namespace scalemark
