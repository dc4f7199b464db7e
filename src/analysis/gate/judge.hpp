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

/// How the launches of both sets belong together.
enum class GateMode {
  sequential,  ///< pairs that a gate has launched side by side, looked at while they came
  pairs,       ///< pairs, looked at once
  samples,     ///< measured apart, looked at once: two samples
};
/// "sequential pairs", "pairs", "samples".
std::string to_string(GateMode mode);

/// A point of the decision; differences are of it alone.
struct JudgedPoint {
  int ranks = 1;
  Json settings;  ///< beside ranks
  std::string unit;
  double base_rate = 0, new_rate = 0;  ///< total units / total seconds of the launches used
  double slowdown_percent = 0;         ///< 100 (1 - exp(centre of the log ratios))
  double p = 1, p_adjusted = 1;        ///< one-sided: of this point alone, and among all of them
  bool regressed = false;              ///< the gate is, and this point is among those to blame
  bool open = false;  ///< the loss that a pass excludes of any one point is possible
};

struct Judgement {
  GateMode mode = GateMode::pairs;
  GateDesign design;
  GateDecision decision;
  /// 95 % of the slowdown, for reading; from 5 repeats on. It does not allow for the looks.
  std::optional<Interval> interval_percent;
  std::vector<JudgedPoint> points;
  std::vector<std::string> warnings;
};

/// Judges the second set of a matching of two by its complete repeats, those that have every point.
/// Repeats are those of the sets' sweeps, else the order of their launches. Of either set
/// `allowed_to_fail` launches may have failed: more in the base leave it inconclusive, more in the
/// second are a RunError. ConfigError where a set pools several builds, where the second lacks a
/// point of the first, or where no repeat is complete.
Judgement judge(const std::vector<ResultSet>& sets, const Matching& matching, GateMode mode,
                const GateDesign& design, std::size_t allowed_to_fail = 0);

/// What a gate launched, where it launched anything.
struct GateLaunches {
  std::size_t launched = 0;  ///< launches that this verdict rests on or that were made for it
  std::size_t most = 0;      ///< that the budget of pairs allowed
  double seconds = 0;        ///< of all of them together
  std::string alternate;     ///< "steps": the launches of a pair took turns; "launches"
  std::string stopped;       ///< why no more pairs came: "verdict", "pairs", "max_seconds"
};

struct VerdictInput {
  const std::vector<ResultSet>& sets;  ///< base and new
  const Matching& matching;            ///< of them
  std::vector<std::string> varied;
  std::vector<std::string> notes, warnings;
  std::optional<GateLaunches> launches;
  Json baseline;  ///< identity of the base's baseline file, or null
};

/// Of sets that were judged. Status ok.
Json make_verdict_record(const VerdictInput& input, const Judgement& judgement);

/// What a gate was asked to keep to; it does not change once launches were looked at.
Json design_json(GateMode mode, const GateDesign& design);

/// Of a gate that could not begin.
Json make_failed_verdict(const Outcome& outcome);
/// Of a gate that came to none: a launch failed, or it was stopped.
Json make_failed_verdict(const Outcome& outcome, const GateDesign& design,
                         const GateLaunches& launches);

/// 1 regressed, 0 pass, 3 inconclusive.
ExitCode exit_code_of(const Judgement& judgement);

}  // namespace scalemark
