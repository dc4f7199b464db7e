// Tests two sets at one point. All tests are on logarithms: a ratio and its inverse are then alike.
#include "analysis/compare/point_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "measure/clock.hpp"
#include "measure/hodges_lehmann.hpp"
#include "measure/significance.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// What a repeat has in common with those of the same pass: its sweep or its record, and the
/// number.
using Bond = std::pair<std::string, std::int64_t>;

Bond bond_of(const Repeat& repeat) {
  const MeasuredLaunch& launch = *repeat.launch;
  return {launch.sweep.empty() ? launch.id : launch.sweep, repeat.number};
}

/// [bond]: its place; empty where two repeats have the same, which then says nothing.
std::map<Bond, std::size_t> places_of(const Repeats& repeats) {
  std::map<Bond, std::size_t> places;
  for (std::size_t i = 0; i < repeats.size(); ++i)
    if (!places.try_emplace(bond_of(repeats[i]), i).second) return {};
  return places;
}

/// A repeat that occurs a second time, as where two curves are launches of one repeat, is another.
using Occurrence = std::pair<std::int64_t, std::size_t>;

std::map<Occurrence, const Repeat*> by_number(const Repeats& repeats) {
  std::map<std::int64_t, std::size_t> seen;
  std::map<Occurrence, const Repeat*> numbered;
  for (const Repeat& repeat : repeats) numbered[{repeat.number, seen[repeat.number]++}] = &repeat;
  return numbered;
}

double rate_of(const Work& work, const MeasuredLaunch& launch, const std::string& metric) {
  return metric == "throughput" ? work.rate() : work.rate() / launch.ranks;
}

}  // namespace

bool is_of_work(const std::string& metric) {
  return metric == "throughput" || metric == "throughput_per_rank" || metric == "efficiency";
}

bool needs_rounds(const std::vector<const MeasuredLaunch*>& a,
                  const std::vector<const MeasuredLaunch*>& b) {
  const auto has_rounds = [](const MeasuredLaunch* launch) { return launch->repeats.size() > 1; };
  return (a.size() < 2 || b.size() < 2) &&
         (std::ranges::any_of(a, has_rounds) || std::ranges::any_of(b, has_rounds));
}

Repeats repeats_of(const std::vector<const MeasuredLaunch*>& launches, const std::string& metric,
                   bool rounds) {
  Repeats all;
  std::int64_t place = 0;
  for (const MeasuredLaunch* launch : launches) {
    const auto add = [&](std::int64_t number, const Work& work) {
      all.push_back({launch, number, rate_of(work, *launch, metric), work});
    };
    if (rounds && is_of_work(metric)) {
      for (const Work& work : launch->repeats) add(++place, work);
      continue;
    }
    const std::int64_t number = launch->sweep.empty() ? ++place : launch->repeat;
    if (is_of_work(metric)) {
      if (!launch->repeats.empty()) add(number, total(launch->repeats));
    } else if (const auto found = launch->metrics.find(metric); found != launch->metrics.end()) {
      all.push_back({launch, number, found->second, {}});
    }
  }
  return all;
}

Repeats efficiencies(const Repeats& throughputs, const Repeats& smallest) {
  Repeats all;
  const auto add = [&](const Repeat& repeat, const Repeat& partner) {
    const double rate = repeat.work.rate() / repeat.launch->ranks;
    const double alone = partner.work.rate() / partner.launch->ranks;
    all.push_back({repeat.launch, repeat.number, rate / alone, {}});
  };
  const auto places = places_of(smallest);
  for (const Repeat& repeat : throughputs)
    if (const auto found = places.find(bond_of(repeat)); found != places.end())
      add(repeat, smallest[found->second]);
  if (!all.empty()) return all;
  for (std::size_t i = 0; i < std::min(throughputs.size(), smallest.size()); ++i)
    add(throughputs[i], smallest[i]);
  return all;
}

std::vector<double> logs_of(const Repeats& repeats) {
  std::vector<double> logs;
  for (const Repeat& repeat : repeats) logs.push_back(std::log(repeat.value));
  return logs;
}

double value_of(const Repeats& repeats, const std::string& metric) {
  if (!is_of_work(metric) || metric == "efficiency") return std::exp(mean(logs_of(repeats)));
  Work all;
  for (const Repeat& repeat : repeats) all += repeat.work;
  return rate_of(all, *repeats.front().launch, metric);
}

bool of_one_sweep(const Repeats& a, const Repeats& b) {
  const MeasuredLaunch& first = *a.front().launch;
  const auto alike = [&](const Repeat& repeat) {
    return !first.sweep.empty() && repeat.launch->sweep == first.sweep &&
           repeat.launch->revision == first.revision;
  };
  return std::ranges::all_of(a, alike) && std::ranges::all_of(b, alike);
}

Pairing pair_up(const Repeats& base, const Repeats& other) {
  Pairing pairing;
  const auto ours = by_number(base), theirs = by_number(other);
  for (const auto& [occurrence, repeat] : ours) {
    const auto partner = theirs.find(occurrence);
    if (partner == theirs.end()) {
      pairing.base_alone.push_back(occurrence.first);
      continue;
    }
    pairing.base.push_back(*repeat);
    pairing.other.push_back(*partner->second);
  }
  for (const auto& [occurrence, repeat] : theirs)
    if (!ours.contains(occurrence)) pairing.other_alone.push_back(occurrence.first);
  return pairing;
}

namespace {

/// Levels at which an effect of the order is told, and at which a trend leaves open what a
/// difference comes from.
constexpr double kOrderLevel = 0.01, kTrendLevel = 0.05;

std::vector<double> starts_of(const Repeats& repeats) {
  std::vector<double> starts;
  for (const Repeat& repeat : repeats) starts.push_back(utc_seconds(repeat.launch->started_at));
  return starts;
}

/// Sorts values by their times, and these too.
void sort_by_time(std::vector<double>& times, std::vector<double>& values) {
  std::vector<std::pair<double, double>> timed;
  for (std::size_t i = 0; i < times.size(); ++i) timed.emplace_back(times[i], values[i]);
  std::ranges::sort(timed);
  for (std::size_t i = 0; i < times.size(); ++i) std::tie(times[i], values[i]) = timed[i];
}

/// Two samples that were measured in pairs are looked at as pairs.
LaunchOrder order_of(TimedLogs logs) {
  if (!logs.paired) {
    LaunchOrder order = order_of_sets(logs.base_starts, logs.starts);
    if (order.design != LaunchDesign::pairs) return order;
    sort_by_time(logs.base_starts, logs.base);
    sort_by_time(logs.starts, logs.other);
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < logs.base.size(); ++i) ratios.push_back(logs.other[i] - logs.base[i]);
  LaunchOrder order = order_of_pairs(logs.base_starts, logs.starts, ratios);
  order.declared = logs.paired;
  return order;
}

std::string second_of_pair(const LaunchOrder& order, const std::string& base) {
  const double percent = 100 * std::expm1(*order.second_differs);
  return fmt::format(
      "the second launch of a pair is {:.1f} % {} than the first (p = {:.4f}; {} came first in {} "
      "of {} pairs)",
      std::abs(percent), percent < 0 ? "lower" : "higher", *order.p, base, order.base_first,
      order.pairs());
}

std::string always_first(const LaunchOrder& order, const std::string& base,
                         const std::string& other) {
  const bool base_first = order.base_first >= order.fresh_first;
  return fmt::format(
      "{} came first in {}, so that what the order or a drift of the machine does can't be told "
      "from the build: let either build come first in half of the pairs (scalemark gate PLAN "
      "--base --new does)",
      base_first ? base : other,
      order.design == LaunchDesign::apart
          ? "all of its launches"
          : fmt::format("{} of {} pairs", std::max(order.base_first, order.fresh_first),
                        order.pairs()));
}

std::string mostly_first(const LaunchOrder& order, const std::string& base,
                         const std::string& other) {
  const bool base_first = order.base_first > order.fresh_first;
  const std::size_t more = std::max(order.base_first, order.fresh_first);
  return fmt::format(
      "{} came first in {} of {} pairs: of what the second launch of a pair loses, {:.0f} % count "
      "as the build's; let either build come first in half of the pairs",
      base_first ? base : other, more, order.pairs(),
      100. * static_cast<double>(2 * more - order.pairs()) / static_cast<double>(order.pairs()));
}

std::string drifts(const SetDrift& drift, double difference, const std::string& base,
                   const std::string& other) {
  const auto percent = [](double log_ratio) { return 100 * std::expm1(log_ratio); };
  return fmt::format(
      "the trend within {} and {} (p = {:.4f}) makes {:+.1f} % of difference by itself, since one "
      "was measured later than the other; seen are {:+.1f} %: what the machine did can't be told "
      "from the build; measure both side by side (scalemark gate PLAN --base --new)",
      base, other, drift.p, percent(drift.makes), percent(difference));
}

}  // namespace

TimedLogs timed_logs(const Repeats& base, const Repeats& other, bool paired) {
  return {starts_of(base), starts_of(other), logs_of(base), logs_of(other), paired};
}

OrderFindings look_at_order(const TimedLogs& logs, double difference, double least,
                            const std::string& base, const std::string& other) {
  OrderFindings found;
  const LaunchOrder order = order_of(logs);
  if (order.design == LaunchDesign::pairs && order.p && *order.p <= kOrderLevel)
    found.warnings.push_back(second_of_pair(order, base));
  if (order.confounded()) {
    found.confounded = true;
    found.warnings.push_back(always_first(order, base, other));
    return found;
  }
  found.confounded = order.hides(difference, least, kTrendLevel);
  if (order.is_unbalanced() || found.confounded)
    found.warnings.push_back(mostly_first(order, base, other));
  const auto drift = drift_of_sets(logs.base_starts, logs.base, logs.starts, logs.other);
  if (!drift || !drift->hides(difference, least, kTrendLevel)) return found;
  found.confounded = true;
  found.drift = drifts(*drift, difference, base, other);
  return found;
}

namespace {

/// What rounding can make of the logarithms of alike values is no disagreement.
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
  const auto found =
      difference.paired()
          ? sign_flip_interval(values.pairs, confidence, questions.assignments)
          : permutation_interval(values.base, values.other, confidence, questions.assignments);
  if (!found) return;
  const auto [lo, hi] = found->interval;
  const double half = (hi - lo) / 2 + kLeastDisagreement;
  difference.estimates_disagree =
      std::ranges::any_of(others, [=](double other) { return std::abs(other - estimate) > half; });
  difference.interval_percent = Interval{percent(lo), percent(hi)};
  difference.interval_confidence = found->confidence;
}

/// Minimum detectable differences: how many standard errors they are is looked for once for each
/// number of launches, since many points have the same.
class Detectable {
 public:
  /// `alpha`: of one comparison.
  Detectable(double alpha, double power) : alpha_(alpha), power_(power) {}

  /// In percent, at the level that the test reaches below alpha; none where it reaches none.
  std::optional<double> percent_of(const Difference& difference, const PointValues& values) {
    const std::size_t n = values.base.size(), m = values.other.size();
    const double step = least_p(difference.paired(), n, m);
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

/// Finds the repeats that equivalence takes, never fewer than an interval takes.
void find_repeats_for_equivalence(Difference& difference, const PointValues& values,
                                  const TestQuestions& questions) {
  const auto repeats = repeats_for_equivalence(deviation_of(values), difference.paired(),
                                               margin_of(*questions.equivalent_percent),
                                               questions.alpha, questions.power);
  if (repeats) difference.repeats_for_equivalence = std::max(*repeats, kLeastRepeats);
}

std::string direction(const Difference& difference, const Metric& metric) {
  const bool more = difference.difference_percent > 0;
  if (!metric.is_speed) return more ? "higher" : "lower";
  return more == metric.higher_is_better ? "faster" : "slower";
}

/// The word of a difference that is shown; empty where none is.
std::string shown_difference(const Difference& difference, const Metric& metric,
                             const TestQuestions& questions) {
  if (difference.p_equivalent && *difference.p_equivalent <= questions.alpha &&
      !difference.estimates_disagree)
    return fmt::format("equivalent within {:g} %", *questions.equivalent_percent);
  if (difference.p_adjusted && *difference.p_adjusted <= questions.alpha)
    return direction(difference, metric);
  return "";
}

std::string verdict_of(const Difference& difference, const Metric& metric,
                       const TestQuestions& questions, std::size_t comparisons) {
  const std::string shown = shown_difference(difference, metric, questions);
  if (!shown.empty()) return difference.confounded ? record::kConfounded : shown;
  const std::size_t n = difference.base_repeats, m = difference.repeats;
  const double least = least_p(difference.paired(), n, m) * static_cast<double>(comparisons);
  const bool enough = std::min(n, m) >= kLeastRepeats && least <= questions.alpha;
  return enough ? record::kNoDifference : record::kTooFew;
}

bool is_open(const std::string& verdict) {
  return verdict == record::kNoDifference || verdict == record::kTooFew;
}

/// What has no value gets this reason, unless it has one.
template <typename T>
void explain(Known<T>& value, const std::string& reason) {
  if (!value && value.why().empty()) value = Unknown{reason};
}

void explain_unknown(Difference& of, bool equivalence_asked) {
  const char* counted = of.in_process() ? "repeats" : "launches";
  const std::size_t least = std::min(of.base_repeats, of.repeats);
  explain(of.p, "a single repeat of a set has no test");
  explain(of.p_adjusted, "a single repeat of a set has no test");
  const std::string too_few =
      fmt::format("too few {} (n={}; {} needed)", counted, least, kLeastRepeats);
  explain(of.interval_percent, too_few);
  explain(of.interval_confidence, too_few);
  explain(of.minimum_detectable_percent,
          fmt::format("so few {} can show no difference (n={}; {} needed)", counted, least,
                      of.repeats_needed));
  const std::string nobody = "no --equivalent was asked for";
  explain(of.repeats_for_equivalence,
          !equivalence_asked ? nobody
          : !of.p_equivalent ? "a single repeat of a set tells no noise"
                             : "a verdict was reached, or no number of launches would do");
  explain(of.p_equivalent, equivalence_asked ? "a single repeat of a set has no test" : nobody);
}

}  // namespace

PointValues test_point(Difference& difference, const Repeats& base, const Repeats& other,
                       const std::string& metric, const TestQuestions& questions) {
  const PointValues values = values_of(base, other, difference.paired());
  difference.base_repeats = base.size();
  difference.repeats = other.size();
  difference.base_value = value_of(base, metric);
  difference.value = value_of(other, metric);
  const double estimate = difference.paired() ? sign_flip_centre(values.pairs)
                                              : permutation_centre(values.base, values.other);
  const double robust = difference.paired() ? hodges_lehmann(values.pairs)
                                            : hodges_lehmann(values.base, values.other);
  const double bare =
      difference.paired() ? mean(values.pairs) : mean(values.other) - mean(values.base);
  difference.difference_percent = percent(estimate);
  difference.mean_percent = percent(bare);
  difference.hodges_lehmann_percent = percent(robust);
  const std::size_t least = std::min(base.size(), other.size());
  if (least < 2) return values;
  const auto both = Alternative::two_sided;
  difference.p = difference.paired()
                     ? sign_flip_test(values.pairs, both, questions.assignments).p
                     : permutation_test(values.base, values.other, both, questions.assignments).p;
  if (questions.equivalent_percent) {
    const Interval margin = margin_of(*questions.equivalent_percent);
    difference.p_equivalent =
        difference.paired()
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
    if (const auto least = detectable.percent_of(difference, values[i]))
      difference.minimum_detectable_percent = *least;
    difference.repeats_needed = repeats_needed(difference.paired(), questions.alpha, comparisons);
    difference.verdict = verdict_of(difference, metric, questions, comparisons);
    if (difference.p_equivalent && is_open(difference.verdict))
      find_repeats_for_equivalence(difference, values[i], questions);
    explain_unknown(difference, questions.equivalent_percent.has_value());
  }
}

namespace {

constexpr const char* kMetric = "throughput";

std::size_t largest_mean(const std::vector<Repeats>& points) {
  std::size_t best = points.size();
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!points[i].empty() &&
        (best == points.size() || value_of(points[i], kMetric) > value_of(points[best], kMetric)))
      best = i;
  return best;
}

}  // namespace

std::optional<Fastest> find_fastest(const std::vector<Repeats>& points) {
  Fastest fastest;
  fastest.point = largest_mean(points);
  const TestQuestions questions;
  std::vector<Difference> differences;
  std::vector<PointValues> values;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == fastest.point || points[i].empty()) continue;
    const Pairing pairs = pair_up(points[fastest.point], points[i]);
    Difference& difference = differences.emplace_back();
    if (!pairs.base.empty() && of_one_sweep(points[fastest.point], points[i]))
      difference.design = PointDesign::paired;
    values.push_back(
        difference.paired()
            ? test_point(difference, pairs.base, pairs.other, kMetric, questions)
            : test_point(difference, points[fastest.point], points[i], kMetric, questions));
  }
  if (differences.empty()) return std::nullopt;
  judge_points(differences, values, find_metric(kMetric, {}), questions);
  fastest.p = 0;
  const auto tests = static_cast<double>(differences.size());
  for (const Difference& difference : differences) {
    const double p = std::min(1.0, difference.p.value_or(1) * tests);
    fastest.p = std::max(fastest.p, p);
    if (p > questions.alpha || difference.difference_percent >= 0) ++fastest.as_fast;
    fastest.repeats_needed = std::max(fastest.repeats_needed, difference.repeats_needed);
    fastest.too_few = fastest.too_few || std::min(difference.base_repeats, difference.repeats) <
                                             difference.repeats_needed;
  }
  fastest.shown = fastest.as_fast == 0;
  return fastest;
}

}  // namespace scalemark
