// Computes joint sign-flip and permutation tests of several series.
#include "measure/joint_permutation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "measure/hodges_lehmann.hpp"
#include "measure/permutation.hpp"
#include "measure/spreads.hpp"
#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {
namespace {

using Places = std::vector<std::size_t>;

/// Standardised values are of order 1, and so is the scale of their rounding.
constexpr double kTie = 10 * kRounding;

/// Returns for each value how many values are at most as large, or `most` + 1 where there are more
/// than `most`.
Places ranks_of(const std::vector<double>& values, std::size_t most) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  const std::size_t sorted = std::min(order.size(), most + 1);
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(sorted), {},
                            [&](std::uint32_t i) { return values[i]; });
  Places ranks(values.size(), most + 1);
  for (std::size_t begin = 0, end = 0; begin < sorted; begin = end) {
    while (end < sorted && (end == begin || values[order[end]] - values[order[end - 1]] <= kTie))
      ++end;
    if (end > most) break;  // more values that are equal may follow
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = end;
  }
  return ranks;
}

}  // namespace

std::vector<double> mean_of_series(const Series& series) {
  std::vector<double> means;
  for (std::size_t i = 0; !series.empty() && i < series.front().size(); ++i) {
    double sum = 0;
    for (const auto& one : series) sum += one.at(i);
    means.push_back(sum / static_cast<double>(series.size()));
  }
  return means;
}

Places joint_places(const JointStatistics& statistics, std::size_t most) {
  Places keys = ranks_of(statistics.mean, most);
  const Places others = ranks_of(statistics.smallest, most);
  // At each rank the mean comes first: 2 r - 1 before 2 r.
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::min(2 * keys[i] - 1, 2 * others[i]);
  Places up_to(2 * most + 3);
  for (const std::size_t key : keys) ++up_to[key];
  std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
  for (std::size_t& key : keys) key = up_to[key];
  return keys;
}

namespace {

/// One number for each repeat: +1 or -1 for a pair; for two samples, 1 where the repeat counts as
/// fresh and 0 where it does not.
using Assignment = std::vector<double>;

/// Collects the statistics of every assignment, with the observed one first.
class Collected {
 public:
  /// `values` are indexed by series, with the mean series last. `deviations` holds the standard
  /// deviation of each over all assignments.
  Collected(Series values, std::vector<double> deviations)
      : values_(std::move(values)), deviations_(std::move(deviations)) {}

  void add(const Assignment& assignment) {
    double smallest = 0;
    for (std::size_t s = 0; s < values_.size(); ++s) {
      double sum = std::inner_product(assignment.begin(), assignment.end(), values_[s].begin(), 0.);
      if (deviations_[s] > 0) sum /= deviations_[s];
      if (s + 1 == values_.size()) {
        statistics_.mean.push_back(sum);
        continue;
      }
      if (observed_.size() + 1 < values_.size()) observed_.push_back(sum);
      smallest = s == 0 ? sum : std::min(smallest, sum);
    }
    statistics_.smallest.push_back(smallest);
  }

  JointTest test() const {
    const auto all = static_cast<double>(statistics_.size());
    const auto share = [&](std::ptrdiff_t count) { return static_cast<double>(count) / all; };
    JointTest test;
    const std::size_t place = joint_places(statistics_, statistics_.size()).front();
    test.p = std::min(1., static_cast<double>(place) / all);
    for (const double mine : observed_)
      test.series_p.push_back(share(std::ranges::count_if(
          statistics_.smallest, [&](double one) { return one <= mine + 10 * kRounding; })));
    return test;
  }

 private:
  Series values_;
  std::vector<double> deviations_, observed_;
  JointStatistics statistics_;
};

Series with_mean(Series series) {
  series.push_back(mean_of_series(series));
  return series;
}

double least_of(double assignments) {
  return assignments <= static_cast<double>(kMostListedAssignments) ? 1 / assignments
                                                                    : 1 / (1. + kDrawnAssignments);
}

}  // namespace

namespace {

/// Returns the p of the union of two tests, of the mean series and of the smallest of the others.
/// `p`: one for each series, that of the mean last.
double union_p(const std::vector<double>& p) {
  const auto series = static_cast<double>(p.size() - 1);
  const double least = *std::min_element(p.begin(), p.end() - 1);
  return std::min(1., 2 * std::min(p.back(), series * least));
}

/// Returns the p of each series by Student's test that its values are no smaller than 0.
std::vector<double> student_ps(const Series& values) {
  std::vector<double> p;
  for (const auto& one : values) {
    std::vector<double> turned = one;
    for (double& value : turned) value = -value;
    p.push_back(student_p(turned));
  }
  return p;
}

/// Other tests, as in sign_flip_test(). `values` are winsorised, `plain` are not; in both the mean
/// series is the last.
void combine_pairs(JointTest& test, const Series& values, const Series& plain) {
  const std::size_t pairs = values.front().size();
  if (pairs < kLeastStudentPairs) return;
  const auto p = student_ps(values), plain_p = student_ps(plain);
  const auto with = [&](double& share, double few, double student) {
    if (pairs <= kMostStudentPairs) share = few_pairs_p(share, few, pairs);
    share = combined_pairs_p(share, student, pairs, 1 / least_joint_sign_flip_p(pairs));
  };
  with(test.p, union_p(p), union_p(plain_p));
  const auto series = static_cast<double>(test.series_p.size());
  const auto adjusted = [=](double p) { return std::min(1., series * p); };
  for (std::size_t s = 0; s < test.series_p.size(); ++s)
    with(test.series_p[s], adjusted(p[s]), adjusted(plain_p[s]));
}

/// One p of each series, that of the mean series last, of "the fresh values are no smaller".
struct SeriesTests {
  std::vector<double> ranks, guard;
  std::vector<double>
      welch;  ///< of the series that have a test of Welch: all where sizes are alike
};

/// The guard counts less, but counts, where the samples are alike, since it is one for all series.
constexpr double kAlikeGuard = 3;

SeriesTests tests_of(const Series& base, const Series& fresh) {
  SeriesTests tests;
  for (std::size_t s = 0; s < base.size(); ++s) {  // greater: base lies above fresh
    const auto welch = welch_test(fresh[s], base[s]);
    const auto guard = winsorised_welch_test(fresh[s], base[s]);
    tests.ranks.push_back(RankSumTest(fresh[s], base[s]).greater_p(0));
    if (welch) tests.welch.push_back(welch->greater_p(0));
    const double weight = may_differ(fresh[s], base[s]) ? 1 : 1 / kAlikeGuard;
    tests.guard.push_back(guard ? weight * guard->greater_p(0) : 0);
  }
  return tests;
}

/// Other tests and unlike spreads, as in permutation_test().
void combine(JointTest& test, const Series& base, const Series& fresh, double assignments) {
  if (std::min(base.front().size(), fresh.front().size()) < kLeastStudentValues) return;
  const SeriesTests tests = tests_of(base, fresh);
  const bool has_welch = tests.welch.size() == tests.ranks.size();
  const auto with = [&](double& p, double ranks, const auto& welch, double guard) {
    const auto mean = has_welch ? std::optional(welch()) : std::nullopt;
    p = std::max(combined_p(p, ranks, mean, assignments), guard);
  };
  with(
      test.p, union_p(tests.ranks), [&] { return union_p(tests.welch); }, union_p(tests.guard));
  const auto series = static_cast<double>(test.series_p.size());
  const auto adjusted = [=](double p) { return std::min(1., series * p); };
  for (std::size_t s = 0; s < test.series_p.size(); ++s)
    with(
        test.series_p[s], adjusted(tests.ranks[s]), [&] { return adjusted(tests.welch[s]); },
        adjusted(tests.guard[s]));
}

/// Tests of several series cannot be surer of one of them than the test of that one alone, which
/// may count all assignments where they draw some, and knows where its centre lies.
void keep_to(JointTest& test, std::vector<double> alone) {
  for (std::size_t s = 0; s < alone.size(); ++s)
    test.series_p[s] = std::max(test.series_p[s], alone[s]);
  test.own_p = std::move(alone);
}

}  // namespace

JointTest joint_sign_flip_test(const Series& differences, std::uint64_t seed) {
  if (differences.empty() || differences.front().empty()) return {};
  std::vector<double> alone;
  for (const auto& one : differences) alone.push_back(sign_flip_test(one, Alternative::less).p);
  if (alone.size() == 1) return {alone.front(), alone, alone};
  const std::size_t pairs = differences.front().size();
  const Series plain = with_mean(differences);
  Series values;
  std::vector<double> deviations;
  for (const auto& one : plain) {
    values.push_back(limited(one, 0, winsor_limit(one)));
    const auto& kept = values.back();
    deviations.push_back(std::sqrt(std::inner_product(kept.begin(), kept.end(), kept.begin(), 0.)));
  }
  Collected collected(values, std::move(deviations));
  Assignment signs(pairs, 1.);
  if (pairs < 64 && (std::size_t{1} << pairs) <= kMostListedAssignments) {
    for (std::size_t mask = 0; mask < std::size_t{1} << pairs; ++mask) {
      for (std::size_t i = 0; i < pairs; ++i) signs[i] = mask >> i & 1U ? -1 : 1;
      collected.add(signs);
    }
  } else {
    collected.add(signs);
    std::mt19937_64 random(seed);
    for (int draw = 0; draw < kDrawnAssignments; ++draw) {
      for (double& sign : signs) sign = random() >> 63 == 0 ? 1 : -1;
      collected.add(signs);
    }
  }
  JointTest test = collected.test();
  combine_pairs(test, values, plain);
  keep_to(test, std::move(alone));
  return test;
}

JointTest joint_permutation_test(const Series& base, const Series& fresh, std::uint64_t seed) {
  if (base.empty() || base.front().empty() || fresh.front().empty()) return {};
  std::vector<double> alone;
  for (std::size_t s = 0; s < base.size(); ++s)
    alone.push_back(permutation_test(base[s], fresh[s], Alternative::less).p);
  if (alone.size() == 1) return {alone.front(), alone, alone};
  const std::size_t n = base.front().size(), m = fresh.front().size();
  const Series all_base = with_mean(base), all_fresh = with_mean(fresh);
  Series values;
  std::vector<double> deviations;
  for (std::size_t s = 0; s < all_base.size(); ++s) {
    std::vector<double> pooled = all_base[s];
    pooled.insert(pooled.end(), all_fresh[s].begin(), all_fresh[s].end());
    const double centre = median(pooled);
    pooled = limited(std::move(pooled), centre, winsor_limit(all_base[s], all_fresh[s]));
    pooled = minus(pooled, mean(pooled));
    // This is the standard deviation of the sum of m values drawn without replacement.
    deviations.push_back(standard_deviation(pooled) *
                         std::sqrt(static_cast<double>(n * m) / static_cast<double>(n + m)));
    values.push_back(std::move(pooled));
  }
  Collected collected(std::move(values), std::move(deviations));
  Assignment is_fresh(n, 0.);
  is_fresh.resize(n + m, 1.);
  if (binomial(n + m, m) <= static_cast<double>(kMostListedAssignments)) {
    do collected.add(is_fresh);  // the observed assignment is the first in order
    while (std::ranges::next_permutation(is_fresh).found);
  } else {
    collected.add(is_fresh);
    std::mt19937_64 random(seed);
    for (int draw = 0; draw < kDrawnAssignments; ++draw) {
      std::ranges::shuffle(is_fresh, random);
      collected.add(is_fresh);
    }
  }
  JointTest test = collected.test();
  combine(test, all_base, all_fresh, 1 / least_joint_permutation_p(n, m));
  keep_to(test, std::move(alone));
  return test;
}

double least_joint_sign_flip_p(std::size_t n) {
  return least_of(std::exp2(static_cast<double>(n)));
}

double least_joint_permutation_p(std::size_t n, std::size_t m) {
  return least_of(binomial(n + m, m));
}

namespace {

void check(const std::vector<SequentialLook>& looks) {
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const bool ascends =
        i == 0 ? looks[i].pairs > 0
               : looks[i].pairs > looks[i - 1].pairs && looks[i].spent >= looks[i - 1].spent;
    if (!ascends || looks[i].pairs > kMostSequentialPairs)
      throw std::invalid_argument("looks must ascend and have at most 22 pairs");
  }
}

/// Computes the winsorised and standardised sum of a series as a function of its flipped signs.
class SignedSum {
 public:
  explicit SignedSum(const std::vector<double>& values)
      : values_(standardised(winsorised_magnitudes(values))),
        whole_(std::accumulate(values_.begin(), values_.end(), 0.)),
        sums_(values_) {}

  double of(std::uint32_t turned) const { return whole_ - 2 * sums_.of(turned); }

 private:
  static std::vector<double> standardised(std::vector<double> values) {
    const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.);
    if (squares > 0)
      for (double& value : values) value /= std::sqrt(squares);
    return values;
  }

  std::vector<double> values_;
  double whole_;
  SubsetSums sums_;
};

/// Holds the assignments of signs that no look has rejected yet. Each is stored as the set of signs
/// that differ from the observed ones.
class Assignments {
 public:
  /// Extends every assignment by either sign of the next pair.
  void extend() {
    const std::size_t known = turned_.size();
    for (std::size_t i = 0; i < known; ++i) turned_.push_back(turned_[i] | 1U << pairs_);
    ++pairs_;
    all_ *= 2;
    refused_ *= 2;
  }

  /// Rejects the first assignments in order until the share `spent` of all assignments is used up,
  /// counting those rejected before. Returns true where the observed assignment is among them.
  bool refuse(const Series& differences, double spent) {
    const double allowed = std::floor(spent * all_ + 1e-9) - refused_;
    if (allowed < 1) return false;
    const auto most = std::min(turned_.size(), static_cast<std::size_t>(allowed));
    const auto places = joint_places(statistics_of(differences), most);
    const bool observed = places.front() <= most;
    std::vector<std::uint32_t> kept;
    for (std::size_t i = 0; i < turned_.size(); ++i)
      if (places[i] > most) kept.push_back(turned_[i]);
    refused_ += static_cast<double>(turned_.size() - kept.size());
    turned_ = std::move(kept);
    return observed;
  }

 private:
  std::vector<double> first_of(const std::vector<double>& values) const {
    return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(pairs_)};
  }

  JointStatistics statistics_of(const Series& differences) const {
    JointStatistics statistics;
    const SignedSum mean(first_of(mean_of_series(differences)));
    for (const std::uint32_t turned : turned_) statistics.mean.push_back(mean.of(turned));
    if (differences.size() == 1) {
      statistics.smallest = statistics.mean;
      return statistics;
    }
    statistics.smallest.assign(turned_.size(), std::numeric_limits<double>::infinity());
    for (const auto& series : differences) {
      const SignedSum sum(first_of(series));
      for (std::size_t i = 0; i < turned_.size(); ++i)
        statistics.smallest[i] = std::min(statistics.smallest[i], sum.of(turned_[i]));
    }
    return statistics;
  }

  std::vector<std::uint32_t> turned_{0};  ///< the observed one, 0, comes first until it is refused
  std::size_t pairs_ = 0;
  double all_ = 1, refused_ = 0;  ///< numbers of assignments
};

}  // namespace

std::optional<std::size_t> first_refusal(const Series& differences,
                                         const std::vector<SequentialLook>& looks) {
  check(looks);
  if (differences.empty()) return std::nullopt;
  const std::size_t known = differences.front().size();
  for (const auto& series : differences)
    if (series.size() != known) throw std::invalid_argument("series of unlike length");
  Assignments assignments;
  std::size_t pairs = 0;
  for (std::size_t look = 0; look < looks.size(); ++look) {
    if (looks[look].pairs > known) return std::nullopt;
    for (; pairs < looks[look].pairs; ++pairs) assignments.extend();
    if (assignments.refuse(differences, looks[look].spent)) return look;
  }
  return std::nullopt;
}

}  // namespace scalemark
