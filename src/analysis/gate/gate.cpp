// See gate.hpp.
#include "analysis/gate/gate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

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

/// The slowdown that one look at the whole level finds with the design's power.
double found_percent(const StandardError& error, const GateDesign& design) {
  // The other side of a two-sided test at twice the level is never reached.
  return slowdown_percent(
      -minimum_detectable_difference(error, 2 * design.alarm.back().spent, design.power));
}

void describe(GateDecision& decision, std::span<const double> log_ratios,
              const GateDesign& design) {
  const auto used = log_ratios.first(decision.pairs);
  if (used.empty()) return;
  decision.slowdown_percent = slowdown_percent(mean(used));
  decision.p = sign_flip_test(used, Alternative::less).p;
  if (used.size() < 2) return;
  const auto last = static_cast<double>(design.alarm.back().pairs);
  decision.detectable_percent =
      found_percent({standard_deviation(used) / std::sqrt(last), last - 1}, design);
}

/// The verdict of the first look that gives one, and its pairs.
GateDecision judge_looks(std::span<const double> log_ratios, const GateDesign& design) {
  // "At least as slow as `excluded`" is refused in favour of larger ratios: the signs are turned.
  std::vector<double> shifted;
  for (const double ratio : log_ratios) shifted.push_back(std::log1p(-design.excluded) - ratio);
  const auto alarm = first_refusal(log_ratios, design.alarm);
  const auto pass = first_refusal(shifted, design.pass);

  GateDecision decision;
  for (std::size_t look = 0; look < design.alarm.size(); ++look) {
    const std::size_t pairs = design.alarm[look].pairs;
    if (pairs > log_ratios.size()) {
      decision.pairs = log_ratios.size();
      decision.next_pairs = pairs;
      return decision;
    }
    decision.pairs = pairs;
    const bool slower = alarm && *alarm <= look;
    const bool small =
        100 * design.threshold > slowdown_percent(mean(log_ratios.first(decision.pairs)));
    const bool excluded = pass && *pass <= look;
    if (slower && !small)
      decision.verdict = GateVerdict::regressed;
    else if (excluded)
      decision.verdict = GateVerdict::pass;
    if (decision.verdict != GateVerdict::more_pairs) return decision;
  }
  decision.verdict = GateVerdict::inconclusive;
  return decision;
}

/// That the fresh rates lie `alternative` of the base's times exp(shift).
double p_of(LogRates logs, Alternative alternative, double shift = 0) {
  for (double& value : logs.base) value += shift;
  return logs.paired ? sign_flip_test(log_ratios(logs), alternative).p
                     : permutation_test(logs.base, logs.fresh, alternative).p;
}

/// The smallest one-sided p that so many repeats can give.
double least_p(const LogRates& logs) {
  return (logs.paired ? least_sign_flip_p(logs.base.size())
                      : least_permutation_p(logs.base.size(), logs.fresh.size())) /
         2;
}

std::optional<double> detectable(const LogRates& logs, const GateDesign& design) {
  if (std::min(logs.base.size(), logs.fresh.size()) < 2 ||
      least_p(logs) > design.alarm.back().spent)
    return std::nullopt;
  return found_percent(
      logs.paired ? paired_error(log_ratios(logs)) : pooled_error(logs.base, logs.fresh), design);
}

}  // namespace

std::string to_string(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::regressed:
      return "regressed";
    case GateVerdict::pass:
      return "pass";
    case GateVerdict::inconclusive:
      return "inconclusive";
    case GateVerdict::more_pairs:
      break;
  }
  return "more pairs";
}

std::vector<double> log_ratios(const LogRates& logs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < logs.base.size(); ++i)
    ratios.push_back(logs.fresh.at(i) - logs.base[i]);
  return ratios;
}

double slowdown_percent(double log_ratio) { return 0 - 100 * std::expm1(log_ratio); }

double slower_p(const LogRates& logs) { return p_of(logs, Alternative::less); }

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

GateDecision decide(std::span<const double> log_ratios, const GateDesign& design) {
  check_design(design);
  GateDecision decision = judge_looks(log_ratios, design);
  describe(decision, log_ratios, design);
  return decision;
}

GateDecision decide_once(const LogRates& logs, const GateDesign& design) {
  GateDecision decision;
  decision.pairs = std::min(logs.base.size(), logs.fresh.size());
  decision.slowdown_percent = slowdown_percent(mean(logs.fresh) - mean(logs.base));
  decision.p = slower_p(logs);
  decision.detectable_percent = detectable(logs, design);
  const double too_slow = p_of(logs, Alternative::greater, std::log1p(-design.excluded));
  const bool slower = decision.p <= design.alarm.back().spent;
  if (slower && decision.slowdown_percent >= 100 * design.threshold)
    decision.verdict = GateVerdict::regressed;
  else if (too_slow <= design.pass.back().spent)
    decision.verdict = GateVerdict::pass;
  else
    decision.verdict = GateVerdict::inconclusive;
  return decision;
}

}  // namespace scalemark
