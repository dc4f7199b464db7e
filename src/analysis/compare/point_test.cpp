// See point_test.hpp. All tests are on logarithms: a ratio and its inverse are then alike.
#include "analysis/compare/point_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "measure/hodges_lehmann.hpp"
#include "measure/significance.hpp"

namespace scalemark {
namespace {

/// Of logarithms: what rounding can make of alike values is no disagreement.
constexpr double kLeastDisagreement = 1e-9;

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

double least_p(bool paired, std::size_t n, std::size_t m) {
  return paired ? least_sign_flip_p(n) : least_permutation_p(n, m);
}

/// Repeats of each set from which on the most extreme outcome stands out among `comparisons`.
std::size_t repeats_needed(bool paired, double alpha, std::size_t comparisons) {
  std::size_t n = kLeastRepeats;
  while (n < kMostExactValues / 2 &&
         least_p(paired, n, n) * static_cast<double>(comparisons) > alpha)
    ++n;
  return n;
}

Interval margin_of(double equivalent_percent) {
  return {std::log1p(-equivalent_percent / 100), std::log1p(equivalent_percent / 100)};
}

StandardError error_of(const PointValues& values) {
  return values.pairs.empty() ? winsorised_error(values.base, values.other)
                              : winsorised_error(values.pairs);
}

/// Standard deviation of one value, or of one difference of a pair.
double deviation_of(const PointValues& values) {
  const auto n = static_cast<double>(values.base.size());
  const auto m = static_cast<double>(values.other.size());
  return error_of(values).value * std::sqrt(values.pairs.empty() ? 1 / (1 / n + 1 / m) : n);
}

PointValues values_of(const Repeats& base, const Repeats& other, bool paired) {
  PointValues values{logs_of(base), logs_of(other), {}};
  for (std::size_t i = 0; paired && i < base.size(); ++i)
    values.pairs.push_back(values.other[i] - values.base[i]);
  return values;
}

/// In percent, and whether other estimates (logarithms) lie further away than half its width.
void find_interval(Difference& difference, const PointValues& values, double estimate,
                   std::initializer_list<double> others, const TestQuestions& questions) {
  const double confidence = 1 - questions.alpha;
  difference.interval =
      difference.paired
          ? sign_flip_interval(values.pairs, confidence, questions.assignments)
          : permutation_interval(values.base, values.other, confidence, questions.assignments);
  if (!difference.interval) return;
  Interval& interval = difference.interval->interval;
  const double half = (interval.hi - interval.lo) / 2 + kLeastDisagreement;
  difference.estimates_disagree =
      std::ranges::any_of(others, [=](double other) { return std::abs(other - estimate) > half; });
  interval = {percent(interval.lo), percent(interval.hi)};
}

/// Minimum detectable differences: how many standard errors they are is looked for once for each
/// number of launches, since many points have the same.
class Detectable {
 public:
  /// `alpha`: of one comparison.
  Detectable(double alpha, double power) : alpha_(alpha), power_(power) {}

  /// In percent, at the level that the exact test reaches below alpha; none where it reaches none.
  std::optional<double> percent_of(const Difference& difference, const PointValues& values) {
    const std::size_t n = values.base.size(), m = values.other.size();
    const double step = least_p(difference.paired, n, m);
    const double level = std::floor(alpha_ / step + 1e-9) * step;
    if (std::min(n, m) < 2 || level <= 0 || level >= 1) return std::nullopt;
    const StandardError error = error_of(values);
    const auto [at, is_new] = errors_.try_emplace({error.degrees_of_freedom, level}, 0);
    if (is_new)
      at->second = minimum_detectable_difference({1, error.degrees_of_freedom}, level, power_);
    return percent(at->second * error.value);
  }

 private:
  double alpha_, power_;
  std::map<std::pair<double, double>, double> errors_;  ///< [degrees of freedom, level]
};

/// Never fewer than an interval takes.
void find_repeats_for_equivalence(Difference& difference, const PointValues& values,
                                  const TestQuestions& questions) {
  difference.repeats_for_equivalence = repeats_for_equivalence(
      deviation_of(values), difference.paired, margin_of(*questions.equivalent_percent),
      questions.alpha, questions.power);
  if (difference.repeats_for_equivalence)
    difference.repeats_for_equivalence =
        std::max(*difference.repeats_for_equivalence, kLeastRepeats);
}

ComparisonVerdict direction(const Difference& difference, const Metric& metric) {
  const bool more = difference.percent > 0;
  if (!metric.is_speed) return more ? ComparisonVerdict::higher : ComparisonVerdict::lower;
  return more == metric.higher_is_better ? ComparisonVerdict::faster : ComparisonVerdict::slower;
}

ComparisonVerdict verdict_of(const Difference& difference, const Metric& metric,
                             const TestQuestions& questions, std::size_t comparisons) {
  if (difference.p_equivalent && *difference.p_equivalent <= questions.alpha)
    return ComparisonVerdict::equivalent;
  if (difference.p_adjusted && *difference.p_adjusted <= questions.alpha)
    return direction(difference, metric);
  const std::size_t n = difference.base_repeats, m = difference.other_repeats;
  const double least = least_p(difference.paired, n, m) * static_cast<double>(comparisons);
  const bool enough = std::min(n, m) >= kLeastRepeats && least <= questions.alpha;
  return enough ? ComparisonVerdict::no_difference_shown : ComparisonVerdict::too_few;
}

bool is_open(ComparisonVerdict verdict) {
  return verdict == ComparisonVerdict::no_difference_shown || verdict == ComparisonVerdict::too_few;
}

}  // namespace

PointValues test_point(Difference& difference, const Repeats& base, const Repeats& other,
                       const std::string& metric, const TestQuestions& questions) {
  const PointValues values = values_of(base, other, difference.paired);
  difference.base_repeats = base.size();
  difference.other_repeats = other.size();
  difference.base_value = value_of(base, metric);
  difference.other_value = value_of(other, metric);
  const double estimate = difference.paired ? sign_flip_centre(values.pairs)
                                            : permutation_centre(values.base, values.other);
  const double robust =
      difference.paired ? hodges_lehmann(values.pairs) : hodges_lehmann(values.base, values.other);
  const double bare =
      difference.paired ? mean(values.pairs) : mean(values.other) - mean(values.base);
  difference.percent = percent(estimate);
  difference.mean_percent = percent(bare);
  difference.hodges_lehmann_percent = percent(robust);
  const std::size_t least = std::min(base.size(), other.size());
  if (least < 2) return values;
  const auto both = Alternative::two_sided;
  difference.p = difference.paired
                     ? sign_flip_test(values.pairs, both, questions.assignments).p
                     : permutation_test(values.base, values.other, both, questions.assignments).p;
  if (questions.equivalent_percent) {
    const Interval margin = margin_of(*questions.equivalent_percent);
    difference.p_equivalent =
        difference.paired
            ? sign_flip_equivalence_p(values.pairs, margin, questions.assignments)
            : permutation_equivalence_p(values.base, values.other, margin, questions.assignments);
  }
  if (least >= kLeastRepeats)
    find_interval(difference, values, estimate, {bare, robust}, questions);
  return values;
}

void judge_points(std::vector<Difference>& differences, const std::vector<PointValues>& values,
                  const Metric& metric, const TestQuestions& questions) {
  std::vector<double> p;
  for (const Difference& difference : differences)
    if (difference.p) p.push_back(*difference.p);
  const auto adjusted = holm_adjusted(p);
  const std::size_t comparisons = std::max<std::size_t>(1, p.size());
  Detectable detectable(questions.alpha / static_cast<double>(comparisons), questions.power);
  std::size_t next = 0;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    Difference& difference = differences[i];
    if (difference.p) difference.p_adjusted = adjusted[next++];
    difference.detectable_percent = detectable.percent_of(difference, values[i]);
    difference.repeats_needed = repeats_needed(difference.paired, questions.alpha, comparisons);
    difference.verdict = verdict_of(difference, metric, questions, comparisons);
    if (difference.p_equivalent && is_open(difference.verdict))
      find_repeats_for_equivalence(difference, values[i], questions);
  }
}

std::string to_string(ComparisonVerdict verdict, double equivalent_percent) {
  switch (verdict) {
    case ComparisonVerdict::faster:
      return "faster";
    case ComparisonVerdict::slower:
      return "slower";
    case ComparisonVerdict::lower:
      return "lower";
    case ComparisonVerdict::higher:
      return "higher";
    case ComparisonVerdict::equivalent:
      return fmt::format("equivalent within {:g} %", equivalent_percent);
    case ComparisonVerdict::no_difference_shown:
      return "no difference shown";
    case ComparisonVerdict::too_few:
      break;
  }
  return "too few launches";
}

}  // namespace scalemark
