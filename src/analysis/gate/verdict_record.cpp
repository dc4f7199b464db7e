// See verdict_record.hpp.
#include "analysis/gate/verdict_record.hpp"

#include "analysis/compare/set_summary.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "json.hpp"
#include "result/record_schemas.hpp"

namespace scalemark {
Json design_json(GateMode mode, const GateDesign& design) {
  Json looks = Json::array();
  for (std::size_t i = 0; i < design.alarm.size(); ++i)
    looks.push_back({{"pairs", design.alarm[i].pairs},
                     {"alarm_spent", design.alarm[i].spent},
                     {"pass_spent", design.pass[i].spent}});
  const bool once = mode != GateMode::sequential;
  return {{"mode", to_string(mode)},
          {"alpha", design.alarm.back().spent},
          {"pass_alpha", design.pass.back().spent},
          {"threshold_percent", 100 * design.threshold},
          {"excluded_percent", 100 * design.excluded},
          {"excluded_point_percent", 100 * design.excluded_point},
          {"power", design.power},
          {"looks", once ? Json(nullptr) : looks}};
}

namespace {

Json point_json(const JudgedPoint& point) {
  return {{"ranks", point.ranks},
          {"settings", point.settings},
          {"unit", point.unit},
          {"base_value", point.base_rate},
          {"value", point.new_rate},
          {"slowdown_percent", point.slowdown_percent},
          {"p", point.p},
          {"p_adjusted", point.p_adjusted},
          {"regressed", point.regressed}};
}

Json launches_json(const std::optional<GateLaunches>& launches) {
  if (!launches) return nullptr;
  return {{"launched", launches->launched},
          {"most", launches->most},
          {"seconds", launches->seconds},
          {"alternate", launches->alternate},
          {"stopped", launches->stopped}};
}

void explain_judgement(Json& record) {
  for (const auto& [path, reason] : {
           std::pair{"design.looks", "the sets were there already and were looked at once"},
           {"interval_percent", "too few repeats (5 needed)"},
           {"detectable_percent", "so few repeats can't reach the level, whatever they are"},
           {"repeats_for_pass", "a verdict was reached, or one repeat tells no noise"},
           {"launches", "the sets were there already"},
           {"baseline", "the base is no baseline file"},
       })
    explain_nulls(record, path, reason);
}

Json failed_verdict(const Outcome& outcome, const Json& design, const Json& launches) {
  Json record = blank_record("verdict");
  record.update(envelope("verdict", outcome.status, outcome.reason));
  record["design"] = design;
  record["launches"] = launches;
  explain_nulls(record, "", "the gate came to no verdict: " + outcome.reason);
  return record;
}

}  // namespace

Json make_verdict_record(const VerdictInput& input, const Judgement& judgement) {
  const GateDecision& decision = judgement.decision;
  Json record = envelope("verdict", Status::ok);
  record["verdict"] = to_string(decision.verdict);
  record["exit_code"] = static_cast<int>(exit_code_of(judgement));
  record["design"] = design_json(judgement.mode, judgement.design);
  record["repeats"] = decision.pairs;
  record["slowdown_percent"] = decision.slowdown_percent;
  const auto& interval = judgement.interval_percent;
  record["interval_percent"] = or_null(interval);
  record["p"] = decision.p;
  record["detectable_percent"] = or_null(decision.detectable_percent);
  record["repeats_for_pass"] = decision.verdict == GateVerdict::inconclusive
                                   ? or_null(decision.repeats_for_pass)
                                   : Json(nullptr);
  record["points"] = Json::array();
  for (const JudgedPoint& point : judgement.points) record["points"].push_back(point_json(point));
  record["varied"] = input.varied;
  record["sets"] = Json::array();
  for (const ResultSet& set : input.sets) record["sets"].push_back(set_json(set));
  record["baseline"] = input.baseline;
  record["launches"] = launches_json(input.launches);
  record["notes"] = input.notes;
  record["warnings"] = input.warnings;
  for (const std::string& warning : judgement.warnings) record["warnings"].push_back(warning);
  record["unavailable"] = Json::object();
  explain_judgement(record);
  diagnosis::add_findings(record, input.sets, input.matching);
  return record;
}

Json make_failed_verdict(const Outcome& outcome) {
  return failed_verdict(outcome, nullptr, nullptr);
}

Json make_failed_verdict(const Outcome& outcome, const GateDesign& design,
                         const GateLaunches& launches) {
  return failed_verdict(outcome, design_json(GateMode::sequential, design),
                        launches_json(launches));
}

ExitCode exit_code_of(const Judgement& judgement) {
  switch (judgement.decision.verdict) {
    case GateVerdict::regressed:
      return ExitCode::regression;
    case GateVerdict::pass:
      return ExitCode::ok;
    default:
      return ExitCode::inconclusive;
  }
}

}  // namespace scalemark
