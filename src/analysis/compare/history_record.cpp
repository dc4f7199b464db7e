// The record of a history.
#include <cmath>

#include "analysis/compare/history.hpp"
#include "analysis/compare/set_summary.hpp"
#include "analysis/diagnosis/diagnose.hpp"

namespace scalemark {
namespace {

double percent_of(double difference) { return 100 * std::expm1(difference); }

Json changes_json(const std::vector<ResultSet>& sets, const std::vector<LevelChange>& changes) {
  Json all = Json::array();
  for (const LevelChange& change : changes)
    all.push_back({{"after", sets[change.first - 1].label},
                   {"at", sets[change.first].label},
                   {"change_percent", percent_of(change.difference)},
                   {"p", change.p},
                   {"kind", to_string(change.kind)},
                   {"until", change.kind == ChangeKind::step ? Json(nullptr)
                                                             : Json(sets[change.end - 1].label)}});
  return all;
}

}  // namespace

Json make_history_record(const std::vector<ResultSet>& sets, const History& history, double alpha,
                         const std::vector<std::string>& notes,
                         const std::vector<std::string>& warnings) {
  Json record = envelope("history", Status::ok);
  record["alpha"] = alpha;
  record["points"] = history.points;
  record["sets"] = Json::array();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    record["sets"].push_back(set_json(sets[i]));
    record["sets"].back()["relative_rate"] = history.rates[i];
  }
  record["changes"] = changes_json(sets, history.found.changes);
  record["drift"] = nullptr;
  if (const auto& drift = history.found.drift)
    record["drift"] = {{"change_percent", percent_of(drift->difference)}, {"p", drift->p}};
  record["set_noise_percent"] = percent_of(history.found.deviation);
  record["launch_noise_percent"] = nullptr;
  if (history.launch_noise) record["launch_noise_percent"] = percent_of(*history.launch_noise);
  record["detectable_percent"] = percent_of(history.smallest_step);
  record["sets_needed"] = Json::array();
  for (const SetsNeeded& needed : history.needed)
    record["sets_needed"].push_back(
        {{"change_percent", needed.change_percent}, {"sets", or_null(needed.sets)}});
  record["notes"] = notes;
  record["warnings"] = warnings;
  record["unavailable"] = Json::object();
  explain_nulls(record, "changes.until", "a step lasts");
  explain_nulls(record, "drift", "no trend is shown that steps do not explain better");
  explain_nulls(record, "launch_noise_percent", "no set has two launches of a point");
  explain_nulls(record, "sets_needed.sets", "more than 40");
  diagnosis::add_findings(record);
  return record;
}

}  // namespace scalemark
