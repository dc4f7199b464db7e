// What `scalemark gate` says of two result sets: the decision over all points, which of them a
// regression comes from, and the verdict record. Pure functions; the rule is in docs/gate.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"
#include "analysis/gate/gate.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

struct Judgement {
  GateMode mode = GateMode::pairs;
  GateDesign design;
  GateDecision decision;
  /// 95 % of the slowdown, for reading; from 5 repeats on. It does not allow for the looks.
  std::optional<Interval> interval_percent;
  std::vector<record::JudgedPoint> points;
  std::vector<std::string> warnings;
};

/// Judges the second set of a matching of two by its complete repeats, those that have every point.
/// Repeats are those of the sets' sweeps, else the order of their launches. Of either set
/// `allowed_to_fail` launches may have failed: more in the base leave it inconclusive, more in the
/// second are a RunError. ConfigError where a set pools several builds, where the second lacks a
/// point of the first, or where no repeat is complete.
Judgement judge(const std::vector<ResultSet>& sets, const Matching& matching, GateMode mode,
                const GateDesign& design, std::size_t allowed_to_fail = 0);

struct VerdictInput {
  const std::vector<ResultSet>& sets;  ///< base and new
  const Matching& matching;            ///< of them
  std::vector<std::string> varied;
  std::vector<std::string> notes, warnings;
  std::optional<record::GateLaunches> launches;
  Json baseline;  ///< identity of the base's baseline file, or null
};

/// Makes the verdict, with status ok, of sets that were judged.
Verdict make_verdict(const VerdictInput& input, const Judgement& judgement);

/// What a gate was asked to keep to; it does not change once launches were looked at.
record::GateRules rules_of(GateMode mode, const GateDesign& design);

/// Makes the verdict of a gate that could not begin.
Verdict make_failed_verdict(const Outcome& outcome);
/// Makes the verdict of a gate that came to none: a launch failed, or it was stopped.
Verdict make_failed_verdict(const Outcome& outcome, const GateDesign& design,
                            const record::GateLaunches& launches);

/// Returns the verdict as it is written.
Json verdict_json(const Verdict& verdict);

/// 1 regressed, 0 pass, 3 inconclusive.
ExitCode exit_code_of(const Judgement& judgement);

}  // namespace scalemark
