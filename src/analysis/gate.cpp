// See gate.hpp.
#include "analysis/gate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "measure/permutation.hpp"
#include "measure/significance.hpp"

namespace scalemark {
namespace {

void check(const GateDesign& design) {
  const auto pairs_of = [](const SequentialLook& look) { return look.pairs; };
  if (design.alarm.empty() ||
      !std::ranges::equal(design.alarm, design.pass, {}, pairs_of, pairs_of))
    throw std::invalid_argument("alarm and pass must be looked for at the same numbers of pairs");
}

void describe(GateDecision& decision, std::span<const double> log_ratios,
              const GateDesign& design) {
  const auto used = log_ratios.first(decision.pairs);
  decision.slowdown_percent = -100 * std::expm1(mean(used));
  decision.p = sign_flip_test(used, Alternative::less).p;
  const auto last = static_cast<double>(design.alarm.back().pairs);
  // The other side of a two-sided test at twice the level is never reached.
  const double detectable =
      minimum_detectable_difference(standard_deviation(used) / std::sqrt(last), last - 1,
                                    2 * design.alarm.back().spent, design.power);
  decision.detectable_percent = -100 * std::expm1(-detectable);
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

std::vector<double> mean_log_ratios(const std::vector<std::vector<double>>& base_rates,
                                    const std::vector<std::vector<double>>& new_rates) {
  std::vector<double> means;
  for (std::size_t pair = 0; pair < base_rates.size(); ++pair) {
    std::vector<double> logs;
    for (std::size_t point = 0; point < base_rates[pair].size(); ++point)
      logs.push_back(std::log(new_rates.at(pair).at(point) / base_rates[pair][point]));
    means.push_back(mean(logs));
  }
  return means;
}

GateDecision decide(std::span<const double> log_ratios, const GateDesign& design) {
  check(design);
  // "At least as slow as `excluded`" is refused in favour of larger ratios: the signs are turned.
  std::vector<double> shifted;
  for (const double ratio : log_ratios) shifted.push_back(std::log1p(-design.excluded) - ratio);
  const auto alarm = first_refusal(log_ratios, design.alarm);
  const auto pass = first_refusal(shifted, design.pass);

  GateDecision decision;
  for (std::size_t look = 0; look < design.alarm.size(); ++look) {
    decision.next_pairs = design.alarm[look].pairs;
    if (decision.next_pairs > log_ratios.size()) return decision;
    decision.pairs = decision.next_pairs;
    decision.next_pairs = 0;
    describe(decision, log_ratios, design);
    const bool slower = alarm && *alarm <= look;
    const bool small = 100 * design.threshold > decision.slowdown_percent;
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

}  // namespace scalemark
