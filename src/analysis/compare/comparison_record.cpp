// The comparison record: what docs/schema/comparison.schema.json asks for.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/set_summary.hpp"
#include "analysis/compare/time_order.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "json.hpp"
#include "result/record_schemas.hpp"

namespace scalemark {
namespace {

std::string better(const Metric& metric) { return metric.higher_is_better ? "higher" : "lower"; }

void explain_difference(Json& record, const std::string& points, const Difference& difference,
                        const CompareQuestions& questions) {
  const std::string counted = difference.in_process ? "repeats" : "launches";
  const std::size_t least = std::min(difference.base_repeats, difference.other_repeats);
  const auto unknown = [&](const char* key, const std::string& why) {
    add_reason(record, points + "." + key, why);
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
  const bool asked = questions.test.equivalent_percent.has_value();
  if (!difference.p_equivalent)
    unknown("p_equivalent",
            asked ? "a single repeat of a set has no test" : "no --equivalent was asked for");
  if (!difference.repeats_for_equivalence)
    unknown("repeats_for_equivalence",
            !asked ? "no --equivalent was asked for"
            : !difference.p_equivalent
                ? "a single repeat of a set tells no noise"
                : "a verdict was reached, or no number of launches would do");
}

Json difference_json(const std::vector<ResultSet>& sets, const MatchedPoint& point,
                     const CompareQuestions& questions, const Difference& difference) {
  const auto& interval = difference.interval;
  return {
      {"set", sets[difference.set].label},
      {"ranks", point.ranks},
      {"settings", point.settings},
      {"unit", difference.unit},
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
      {"p_equivalent", or_null(difference.p_equivalent)},
      {"repeats_for_equivalence", or_null(difference.repeats_for_equivalence)},
      {"verdict", to_string(difference.verdict, questions.test.equivalent_percent.value_or(0))}};
}

Json points_json(Json& record, const std::string& place, const std::vector<ResultSet>& sets,
                 const Matching& matching, const CompareQuestions& questions,
                 const Comparison& comparison) {
  Json points = Json::array();
  for (const Difference& difference : comparison.differences) {
    points.push_back(
        difference_json(sets, matching.points[difference.point], questions, difference));
    explain_difference(record, place, difference, questions);
  }
  return points;
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

/// Those of a further metric begin with its name, unless they hold for the first one too.
void add_sentences(Json& all, const std::vector<std::string>& sentences,
                   const Comparison& comparison, const Comparison& first) {
  for (const std::string& sentence : sentences)
    if (&comparison == &first)
      all.push_back(sentence);
    else if (std::ranges::find(all, Json(sentence)) == all.end())
      all.push_back(comparison.metric.name + ": " + sentence);
}

}  // namespace

Json make_comparison_record(const std::vector<ResultSet>& sets, const Matching& matching,
                            const CompareQuestions& questions,
                            const std::vector<Comparison>& comparisons) {
  const Comparison& first = comparisons.front();
  Json record = envelope("comparison", Status::ok);
  record["metric"] = first.metric.name;
  record["better"] = better(first.metric);
  record["alpha"] = questions.test.alpha;
  record["power"] = questions.test.power;
  record["equivalent_percent"] = or_null(questions.test.equivalent_percent);
  record["varied"] = questions.varied;
  record["base"] = sets.front().label;
  record["sets"] = Json::array();
  for (const ResultSet& set : sets) record["sets"].push_back(set_json(set));
  record["points"] = Json::array();
  record["further"] = Json::array();
  record["unmatched"] = unmatched_json(sets, matching);
  record["notes"] = set_notes(sets, matching, questions.varied);
  for (const std::string& note : machine_notes(sets)) record["notes"].push_back(note);
  record["warnings"] = time_warnings(sets, matching, first.metric.name, questions.test.alpha);
  record["unavailable"] = Json::object();
  record["points"] = points_json(record, "points", sets, matching, questions, first);
  for (const Comparison& other : std::span(comparisons).subspan(1))
    record["further"].push_back(
        {{"metric", other.metric.name},
         {"better", better(other.metric)},
         {"points", points_json(record, "further.points", sets, matching, questions, other)}});
  for (const Comparison& comparison : comparisons) {
    add_sentences(record["notes"], comparison.notes, comparison, first);
    add_sentences(record["warnings"], comparison.warnings, comparison, first);
  }
  explain_nulls(record, "equivalent_percent", "no --equivalent was asked for");
  diagnosis::add_findings(record, sets, matching);
  return record;
}

}  // namespace scalemark
