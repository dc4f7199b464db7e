// See compare.hpp. All tests are on logarithms: a ratio and its inverse are then alike.
#include "analysis/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "error.hpp"
#include "measure/hodges_lehmann.hpp"
#include "measure/significance.hpp"

namespace scalemark {
namespace {

using Values = std::vector<double>;
using Launches = std::vector<const MeasuredLaunch*>;

double percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

/// What is tested: one value a repeat, and all of them in one.
struct Sample {
  Values logs;
  double value = 0;
};

double metric_of(const MeasuredLaunch& launch, const std::string& metric) {
  const auto found = launch.metrics.find(metric);
  if (found != launch.metrics.end()) return found->second;
  std::vector<std::string> there{"throughput"};
  for (const auto& [name, value] : launch.metrics) there.push_back(name);
  throw ConfigError(fmt::format("{}: has no {}; it has {}", launch.path.string(), metric,
                                fmt::join(there, ", ")));
}

Sample sample_of(const Launches& launches, const std::string& metric, bool in_process) {
  Sample sample;
  std::vector<Work> works;
  for (const MeasuredLaunch* launch : launches) {
    if (metric != "throughput") {
      sample.logs.push_back(std::log(metric_of(*launch, metric)));
      continue;
    }
    if (in_process)
      works.insert(works.end(), launch->repeats.begin(), launch->repeats.end());
    else
      works.push_back(total(launch->repeats));
  }
  for (const Work& work : works) sample.logs.push_back(std::log(work.rate()));
  sample.value = works.empty() ? std::exp(mean(sample.logs)) : total(works).rate();
  return sample;
}

/// Rounds of curves serve where a set has one launch only.
bool needs_rounds(const Launches& a, const Launches& b) {
  const auto has_rounds = [](const MeasuredLaunch* launch) { return launch->repeats.size() > 1; };
  return (a.size() < 2 || b.size() < 2) &&
         (std::ranges::any_of(a, has_rounds) || std::ranges::any_of(b, has_rounds));
}

/// Launches of one sweep by one build lie side by side: every repeat went once through all points.
bool of_one_sweep(const Launches& a, const Launches& b) {
  const auto alike = [&](const MeasuredLaunch* launch) {
    return !launch->sweep.empty() && launch->sweep == a.front()->sweep &&
           launch->revision == a.front()->revision;
  };
  return std::ranges::all_of(a, alike) && std::ranges::all_of(b, alike);
}

/// The repeats that both have, in one order.
std::pair<Launches, Launches> common_repeats(const Launches& a, const Launches& b) {
  std::pair<Launches, Launches> common;
  for (const MeasuredLaunch* ours : a)
    for (const MeasuredLaunch* theirs : b)
      if (ours->repeat == theirs->repeat) {
        common.first.push_back(ours);
        common.second.push_back(theirs);
      }
  return common;
}

Values differences(const Values& a, const Values& b) {
  Values d;
  for (std::size_t i = 0; i < a.size(); ++i) d.push_back(b[i] - a[i]);
  return d;
}

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

class PointTest {
 public:
  PointTest(Difference& difference, const Sample& base, const Sample& other)
      : difference_(difference), base_(base), other_(other) {
    if (difference.paired) pairs_ = differences(base.logs, other.logs);
  }

  void describe() {
    difference_.base_repeats = base_.logs.size();
    difference_.other_repeats = other_.logs.size();
    difference_.base_value = base_.value;
    difference_.other_value = other_.value;
    difference_.percent = 100 * (other_.value / base_.value - 1);
    difference_.hodges_lehmann_percent = percent(
        difference_.paired ? hodges_lehmann(pairs_) : hodges_lehmann(base_.logs, other_.logs));
  }

  void test(double confidence) {
    const std::size_t least = std::min(base_.logs.size(), other_.logs.size());
    if (least < 2) return;
    difference_.p = difference_.paired
                        ? sign_flip_test(pairs_, Alternative::two_sided).p
                        : permutation_test(base_.logs, other_.logs, Alternative::two_sided).p;
    if (least < kLeastRepeats) return;
    difference_.interval = difference_.paired
                               ? sign_flip_interval(pairs_, confidence)
                               : permutation_interval(base_.logs, other_.logs, confidence);
    if (!difference_.interval) return;
    Interval& interval = difference_.interval->interval;
    interval = {percent(interval.lo), percent(interval.hi)};
  }

  /// Of the level that the exact test reaches below `alpha`; none where it reaches none.
  void find_detectable(double alpha, double power) {
    const std::size_t n = base_.logs.size(), m = other_.logs.size();
    const double step = least_p(difference_.paired, n, m);
    const double level = std::floor(alpha / step + 1e-9) * step;
    if (std::min(n, m) < 2 || level <= 0 || level >= 1) return;
    const StandardError error =
        difference_.paired ? paired_error(pairs_) : pooled_error(base_.logs, other_.logs);
    difference_.detectable_percent = percent(minimum_detectable_difference(error, level, power));
  }

 private:
  Difference& difference_;
  const Sample &base_, &other_;
  Values pairs_;
};

ComparisonVerdict verdict_of(const Difference& difference, const CompareQuestions& questions,
                             std::size_t comparisons) {
  if (difference.p_adjusted && *difference.p_adjusted <= questions.alpha) {
    const bool more = difference.percent > 0;
    if (questions.metric == "throughput")
      return more ? ComparisonVerdict::faster : ComparisonVerdict::slower;
    if (questions.metric == "joules_per_sample")
      return more ? ComparisonVerdict::higher : ComparisonVerdict::lower;
    return more ? ComparisonVerdict::slower : ComparisonVerdict::faster;
  }
  const std::size_t n = difference.base_repeats, m = difference.other_repeats;
  const double least = least_p(difference.paired, n, m) * static_cast<double>(comparisons);
  const bool enough = std::min(n, m) >= kLeastRepeats && least <= questions.alpha;
  return enough ? ComparisonVerdict::no_difference_shown : ComparisonVerdict::too_few;
}

/// What a comparison of two sets at one point is made from.
struct Tested {
  Difference difference;
  Sample base, other;
};

std::string place(const std::vector<ResultSet>& sets, const MatchedPoint& point, std::size_t set) {
  std::string text =
      fmt::format("{} at {} {}", sets[set].label, point.ranks, point.ranks == 1 ? "rank" : "ranks");
  for (const auto& [name, value] : point.settings.items())
    text += fmt::format(" {}={}", name, plain_value(value));
  return text;
}

class Comparer {
 public:
  Comparer(const std::vector<ResultSet>& sets, const Matching& matching,
           const CompareQuestions& questions)
      : sets_(sets), matching_(matching), questions_(questions) {}

  Comparison compare() {
    for (std::size_t set = 1; set < sets_.size(); ++set)
      for (std::size_t point = 0; point < matching_.points.size(); ++point) add(set, point);
    adjust();
    for (Tested& one : tested_) made_.differences.push_back(std::move(one.difference));
    return std::move(made_);
  }

 private:
  void warn(const std::string& text) {
    if (std::ranges::find(made_.warnings, text) == made_.warnings.end())
      made_.warnings.push_back(text);
  }

  void add(std::size_t set, std::size_t index) {
    const MatchedPoint& point = matching_.points[index];
    Launches a = point.launches[0], b = point.launches[set];
    if (a.empty() || b.empty()) return;
    Tested one;
    one.difference.set = set;
    one.difference.point = index;
    one.difference.in_process = questions_.metric == "throughput" && needs_rounds(a, b);
    if (one.difference.in_process)
      warn(
          "repeats within one launch share its placement of ranks and memory: they say little of "
          "other launches; compare fresh launches (scalemark sweep) before you believe a "
          "difference");
    pair_up(one.difference, a, b, point);
    one.base = sample_of(a, questions_.metric, one.difference.in_process);
    one.other = sample_of(b, questions_.metric, one.difference.in_process);
    check_pairs(one, point);
    PointTest test(one.difference, one.base, one.other);
    test.describe();
    test.test(1 - questions_.alpha);
    tested_.push_back(std::move(one));
  }

  void pair_up(Difference& difference, Launches& a, Launches& b, const MatchedPoint& point) {
    difference.paired = questions_.paired;
    if (questions_.paired || difference.in_process || !of_one_sweep(a, b)) return;
    const auto [ours, theirs] = common_repeats(a, b);
    if (ours.empty()) return;
    if (ours.size() < std::max(a.size(), b.size()))
      warn(fmt::format("{}: {} repeats have no partner and were left out",
                       place(sets_, point, difference.set), a.size() + b.size() - 2 * ours.size()));
    difference.paired = true;
    a = ours;
    b = theirs;
  }

  void check_pairs(const Tested& one, const MatchedPoint& point) const {
    if (!one.difference.paired || one.base.logs.size() == one.other.logs.size()) return;
    throw ConfigError(
        fmt::format("--paired: {} has {} repeats, but {} has {}; pairs need as many of each",
                    place(sets_, point, 0), one.base.logs.size(),
                    place(sets_, point, one.difference.set), one.other.logs.size()));
  }

  void adjust() {
    std::vector<double> p;
    for (const Tested& one : tested_)
      if (one.difference.p) p.push_back(*one.difference.p);
    const auto adjusted = holm_adjusted(p);
    const std::size_t comparisons = std::max<std::size_t>(1, p.size());
    std::size_t next = 0;
    for (Tested& one : tested_) {
      Difference& difference = one.difference;
      if (difference.p) difference.p_adjusted = adjusted[next++];
      PointTest(difference, one.base, one.other)
          .find_detectable(questions_.alpha / static_cast<double>(comparisons), questions_.power);
      difference.repeats_needed = repeats_needed(difference.paired, questions_.alpha, comparisons);
      difference.verdict = verdict_of(difference, questions_, comparisons);
    }
  }

  const std::vector<ResultSet>& sets_;
  const Matching& matching_;
  const CompareQuestions& questions_;
  std::vector<Tested> tested_;
  Comparison made_;
};

}  // namespace

std::string to_string(ComparisonVerdict verdict) {
  switch (verdict) {
    case ComparisonVerdict::faster:
      return "faster";
    case ComparisonVerdict::slower:
      return "slower";
    case ComparisonVerdict::lower:
      return "lower";
    case ComparisonVerdict::higher:
      return "higher";
    case ComparisonVerdict::no_difference_shown:
      return "no difference shown";
    case ComparisonVerdict::too_few:
      break;
  }
  return "too few launches";
}

Comparison compare_sets(const std::vector<ResultSet>& sets, const Matching& matching,
                        const CompareQuestions& questions) {
  return Comparer(sets, matching, questions).compare();
}

}  // namespace scalemark
