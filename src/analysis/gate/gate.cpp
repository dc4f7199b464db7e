// Decides by the rule of the gate, after pairs and of finished sets.
#include "analysis/gate/gate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "measure/joint_permutation.hpp"
#include "measure/permutation.hpp"
#include "measure/significance.hpp"

namespace scalemark {
namespace {

void check_design(const GateDesign& design) {
  const auto pairs_of = [](const SequentialLook& look) { return look.pairs; };
  if (design.alarm.empty() ||
      !std::ranges::equal(design.alarm, design.pass, {}, pairs_of, pairs_of))
    throw std::invalid_argument("alarm and pass must be looked for at the same numbers of pairs");
}

Series first_pairs(const Series& series, std::size_t pairs) {
  Series first = series;
  for (auto& one : first) one.resize(pairs);
  return first;
}

/// "At least as slow as `slowdown`" is refused in favour of larger ratios: the signs are turned.
std::vector<double> turned(std::vector<double> ratios, double slowdown) {
  for (double& ratio : ratios) ratio = std::log1p(-slowdown) - ratio;
  return ratios;
}

/// Slower than nothing: on the whole, or at a point that the test blames.
bool matters(const GateDecision& decision, const std::vector<double>& point_slowdowns,
             const GateDesign& design) {
  const double threshold = 100 * design.threshold;
  if (decision.slowdown_percent >= threshold) return true;
  for (std::size_t i = 0; i < point_slowdowns.size(); ++i)
    if (decision.point_p[i] <= design.alarm.back().spent && point_slowdowns[i] >= threshold)
      return true;
  return false;
}

/// The slowdown that one look at the whole level finds with the design's power.
double found_percent(const StandardError& error, const GateDesign& design) {
  // The other side of a two-sided test at twice the level is never reached.
  return slowdown_percent(
      -minimum_detectable_difference(error, 2 * design.alarm.back().spent, design.power));
}

/// Repeats of either side that are needed; those of `logs` gave this error.
std::size_t enough_for_pass(const StandardError& error, std::size_t repeats, bool paired,
                            const GateDesign& design) {
  const double alpha = design.alarm.back().spent;
  return std::max(paired ? least_pairs(alpha) : least_launches(alpha),
                  repeats_to_find(-std::log1p(-design.excluded), error, repeats,
                                  2 * design.pass.back().spent, design.power));
}

/// What is told beside the verdict, of the pairs used.
void describe(GateDecision& decision, const Series& used) {
  if (decision.pairs == 0) return;
  const JointTest test = joint_sign_flip_test(used);
  decision.slowdown_percent = slowdown_percent(sign_flip_centre(mean_of_series(used)));
  decision.p = test.p;
  decision.point_p = test.series_p;
  decision.own_p = test.own_p;
}

void describe_noise(GateDecision& decision, const Series& used, const GateDesign& design) {
  if (decision.pairs < 2) return;
  const StandardError error = winsorised_error(mean_of_series(used));
  const auto pairs = static_cast<double>(decision.pairs);
  const auto last = static_cast<double>(design.alarm.back().pairs);
  decision.detectable_percent =
      found_percent({error.value * std::sqrt(pairs / last), last - 1}, design);
  decision.repeats_for_pass = enough_for_pass(error, decision.pairs, true, design);
}

/// The looks at which each thing is refused.
class Looks {
 public:
  Looks(const Series& ratios, const GateDesign& design)
      : alarm_(first_refusal(ratios, design.alarm)),
        pass_(first_refusal({turned(mean_of_series(ratios), design.excluded)}, design.pass)) {
    for (const auto& point : ratios)
      points_.push_back(first_refusal({turned(point, design.excluded_point)}, design.pass));
  }

  bool slower(std::size_t look) const { return alarm_ && *alarm_ <= look; }
  std::vector<std::size_t> open_points(std::size_t look) const {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (!points_[i] || *points_[i] > look) open.push_back(i);
    return open;
  }
  bool mean_excluded(std::size_t look) const { return pass_ && *pass_ <= look; }

 private:
  using Look = std::optional<std::size_t>;
  Look alarm_, pass_;
  std::vector<Look> points_;
};

/// Whether intervals and bare means hold no slowdown for possible that a pass excludes. The bare
/// mean of a point may differ from its robust one, as long as it lost less than that.
bool nothing_refutes_pass(const LogRates& logs, const GateDesign& design) {
  if (!answer_of(mean_point(logs), design).excludes(std::log1p(-design.excluded))) return false;
  if (logs.base.size() == 1 && design.excluded_point >= design.excluded) return true;
  const double most = std::log1p(-design.excluded_point);
  for (std::size_t i = 0; i < logs.base.size(); ++i) {
    const ShiftAnswer point = answer_of(one_point(logs, i), design);
    if (!point.interval || point.interval->interval.lo <= most || point.bare <= most) return false;
  }
  return true;
}

/// Points with a larger share of slow launches in the new set, by Bonferroni over the points.
std::vector<std::size_t> slow_points(const LogRates& logs, const GateDesign& design) {
  const double level = design.alarm.back().spent / 2 /
                       static_cast<double>(std::max<std::size_t>(1, logs.base.size()));
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < logs.base.size(); ++i)
    if (slow_of(one_point(logs, i), design).p <= level) found.push_back(i);
  return found;
}

/// Log ratios as rates against a base that is always 1.
LogRates as_rates(const Series& ratios) {
  LogRates logs;
  for (const auto& point : ratios) {
    logs.base.emplace_back(point.size());
    logs.fresh.push_back(point);
  }
  return logs;
}

std::vector<double> slowdowns(const Series& ratios) {
  std::vector<double> all;
  for (const auto& point : ratios) all.push_back(slowdown_percent(sign_flip_centre(point)));
  return all;
}

/// The verdict of the first look that gives one, and its pairs.
GateDecision judge_looks(const Series& ratios, const GateDesign& design) {
  const std::size_t known = ratios.empty() ? 0 : ratios.front().size();
  const Looks looks(ratios, design);
  GateDecision decision;
  for (std::size_t look = 0; look < design.alarm.size(); ++look) {
    const std::size_t pairs = design.alarm[look].pairs;
    decision.pairs = std::min(pairs, known);
    const Series used = first_pairs(ratios, decision.pairs);
    if (pairs > known) {
      decision.next_pairs = pairs;
      describe(decision, used);
      return decision;
    }
    decision.open = looks.open_points(look);
    const bool slower = looks.slower(look);
    const bool excluded = looks.mean_excluded(look) && decision.open.empty() &&
                          nothing_refutes_pass(as_rates(used), design);
    const bool last = look + 1 == design.alarm.size();
    if (!slower && !excluded && !last) continue;
    describe(decision, used);
    if (last) decision.slow_points = slow_points(as_rates(used), design);
    if ((slower && matters(decision, slowdowns(used), design)) || !decision.slow_points.empty())
      decision.verdict = GateVerdict::regressed;
    else if (excluded)
      decision.verdict = GateVerdict::pass;
    if (decision.verdict != GateVerdict::more_pairs) return decision;
  }
  decision.verdict = GateVerdict::inconclusive;
  return decision;
}

/// That the fresh rates of one series lie above the base's times exp(shift).
double above_p(LogRates logs, double shift) {
  for (double& value : logs.base.front()) value += shift;
  const auto above = Alternative::greater;
  return logs.paired ? sign_flip_test(log_ratios(logs).front(), above).p
                     : permutation_test(logs.base.front(), logs.fresh.front(), above).p;
}

std::vector<double> slowdowns(const LogRates& logs) {
  std::vector<double> all;
  for (std::size_t i = 0; i < logs.base.size(); ++i)
    all.push_back(slowdown_percent(centre_of(one_point(logs, i))));
  return all;
}

void describe_once(GateDecision& decision, const LogRates& logs, const GateDesign& design) {
  const std::size_t n = logs.base.front().size(), m = logs.fresh.front().size();
  decision.pairs = std::min(n, m);
  const JointTest test = logs.paired ? joint_sign_flip_test(log_ratios(logs))
                                     : joint_permutation_test(logs.base, logs.fresh);
  decision.p = test.p;
  decision.point_p = test.series_p;
  decision.own_p = test.own_p;
  decision.slowdown_percent = slowdown_percent(centre_of(mean_point(logs)));
  const double least = logs.paired ? least_joint_sign_flip_p(n) : least_joint_permutation_p(n, m);
  decision.can_fail = least <= design.alarm.back().spent;
  if (decision.pairs < 2) return;
  const StandardError error =
      logs.paired ? winsorised_error(mean_of_series(log_ratios(logs)))
                  : winsorised_error(mean_of_series(logs.base), mean_of_series(logs.fresh));
  decision.repeats_for_pass = enough_for_pass(error, decision.pairs, logs.paired, design);
  if (decision.can_fail) decision.detectable_percent = found_percent(error, design);
}

}  // namespace

Series log_ratios(const LogRates& logs) {
  Series ratios = logs.fresh;
  for (std::size_t i = 0; i < ratios.size(); ++i)
    for (std::size_t k = 0; k < ratios[i].size(); ++k) ratios[i][k] -= logs.base.at(i).at(k);
  return ratios;
}

LogRates one_point(const LogRates& logs, std::size_t point) {
  return {{logs.base[point]}, {logs.fresh[point]}, logs.paired};
}

LogRates mean_point(const LogRates& logs) {
  return {{mean_of_series(logs.base)}, {mean_of_series(logs.fresh)}, logs.paired};
}

ShiftAnswer answer_of(const LogRates& one, const GateDesign& design) {
  ShiftQuestions questions;
  questions.least_slow = -std::log1p(-design.excluded);
  return one.paired ? answer_of_pairs(log_ratios(one).front(), questions)
                    : answer_of_samples(one.base.front(), one.fresh.front(), questions);
}

SlowLaunches slow_of(const LogRates& one, const GateDesign& design) {
  const double least = -std::log1p(-design.excluded);
  return one.paired ? slow_pairs(log_ratios(one).front(), least)
                    : slow_launches(one.base.front(), one.fresh.front(), least);
}

double centre_of(const LogRates& logs) {
  return logs.paired ? sign_flip_centre(log_ratios(logs).front())
                     : permutation_centre(logs.base.front(), logs.fresh.front());
}

double slowdown_percent(double log_ratio) { return 0 - 100 * std::expm1(log_ratio); }

GateDesign gate_design(std::size_t pairs, double alpha) {
  if (pairs > kMostSequentialPairs) throw std::invalid_argument("a gate has at most 22 pairs");
  GateDesign design;
  const double all_alarms = design.alarm.back().spent;
  const auto beyond = [&](const SequentialLook& look) { return look.pairs >= pairs; };
  for (SequentialLook& look : design.alarm) look.spent *= alpha / all_alarms;
  const double all_passes = design.pass.back().spent;
  std::erase_if(design.alarm, beyond);
  std::erase_if(design.pass, beyond);
  design.alarm.push_back({pairs, alpha});
  design.pass.push_back({pairs, all_passes});
  return design;
}

std::size_t least_pairs(double alpha) {
  std::size_t pairs = 1;
  while (std::exp2(-static_cast<double>(pairs)) > alpha) ++pairs;
  return pairs;
}

std::size_t least_launches(double alpha) {
  std::size_t launches = 1;
  while (least_permutation_p(launches, launches) / 2 > alpha && launches < kMostExactValues)
    ++launches;
  return launches;
}

GateDecision decide(const Series& log_ratios, const GateDesign& design) {
  check_design(design);
  GateDecision decision = judge_looks(log_ratios, design);
  describe_noise(decision, first_pairs(log_ratios, decision.pairs), design);
  return decision;
}

GateDecision decide_once(const LogRates& logs, const GateDesign& design) {
  GateDecision decision;
  describe_once(decision, logs, design);
  const double level = design.pass.back().spent;
  const auto excluded = [&](LogRates one, double slowdown) {
    return above_p(std::move(one), std::log1p(-slowdown)) <= level;
  };
  for (std::size_t i = 0; i < logs.base.size(); ++i)
    if (!excluded(one_point(logs, i), design.excluded_point)) decision.open.push_back(i);
  const bool slower = decision.p <= design.alarm.back().spent;
  decision.verdict = GateVerdict::inconclusive;
  if (!decision.can_fail) return decision;
  decision.slow_points = slow_points(logs, design);
  if ((slower && matters(decision, slowdowns(logs), design)) || !decision.slow_points.empty())
    decision.verdict = GateVerdict::regressed;
  else if (decision.open.empty() && excluded(mean_point(logs), design.excluded) &&
           nothing_refutes_pass(logs, design))
    decision.verdict = GateVerdict::pass;
  return decision;
}

}  // namespace scalemark
