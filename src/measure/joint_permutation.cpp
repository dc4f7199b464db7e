// See joint_permutation.hpp.
#include "measure/joint_permutation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "measure/all_subsets.hpp"
#include "measure/counted_assignments.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// One number a repeat: +1 or -1 of a pair, or 1 where it counts as a fresh one and 0 where not.
using Assignment = std::vector<double>;

/// The statistics of every assignment, the observed one first.
class Collected {
 public:
  /// `values` by series, the mean series last; `deviation` of each over all assignments.
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

JointTest joint_sign_flip_test(const Series& differences, std::uint64_t seed) {
  if (differences.empty() || differences.front().empty()) return {};
  const std::size_t pairs = differences.front().size();
  Series values;
  std::vector<double> deviations;
  for (auto& one : with_mean(differences)) {
    values.push_back(winsorised_magnitudes(std::move(one)));
    const auto& kept = values.back();
    deviations.push_back(std::sqrt(std::inner_product(kept.begin(), kept.end(), kept.begin(), 0.)));
  }
  Collected collected(std::move(values), std::move(deviations));
  Assignment signs(pairs, 1.);
  if (pairs < 64 && (std::size_t{1} << pairs) <= kMostListedAssignments) {
    for (std::size_t mask = 0; mask < std::size_t{1} << pairs; ++mask) {
      for (std::size_t i = 0; i < pairs; ++i) signs[i] = mask >> i & 1U ? -1 : 1;
      collected.add(signs);
    }
    return collected.test();
  }
  collected.add(signs);
  std::mt19937_64 random(seed);
  for (int draw = 0; draw < kDrawnAssignments; ++draw) {
    for (double& sign : signs) sign = random() >> 63 == 0 ? 1 : -1;
    collected.add(signs);
  }
  return collected.test();
}

JointTest joint_permutation_test(const Series& base, const Series& fresh, std::uint64_t seed) {
  if (base.empty() || base.front().empty() || fresh.front().empty()) return {};
  const std::size_t n = base.front().size(), m = fresh.front().size();
  const Series all_base = with_mean(base), all_fresh = with_mean(fresh);
  Series values;
  std::vector<double> deviations;
  for (std::size_t s = 0; s < all_base.size(); ++s) {
    std::vector<double> pooled = all_base[s];
    pooled.insert(pooled.end(), all_fresh[s].begin(), all_fresh[s].end());
    pooled = winsorised_deviations(std::move(pooled));
    pooled = minus(pooled, mean(pooled));
    // Of the sum over m drawn without replacement.
    deviations.push_back(standard_deviation(pooled) *
                         std::sqrt(static_cast<double>(n * m) / static_cast<double>(n + m)));
    values.push_back(std::move(pooled));
  }
  Collected collected(std::move(values), std::move(deviations));
  Assignment is_fresh(n, 0.);
  is_fresh.resize(n + m, 1.);
  if (binomial(n + m, m) <= static_cast<double>(kMostListedAssignments)) {
    do collected.add(is_fresh);  // the observed one is the first in order
    while (std::ranges::next_permutation(is_fresh).found);
    return collected.test();
  }
  collected.add(is_fresh);
  std::mt19937_64 random(seed);
  for (int draw = 0; draw < kDrawnAssignments; ++draw) {
    std::ranges::shuffle(is_fresh, random);
    collected.add(is_fresh);
  }
  return collected.test();
}

double least_joint_sign_flip_p(std::size_t n) {
  return least_of(std::exp2(static_cast<double>(n)));
}

double least_joint_permutation_p(std::size_t n, std::size_t m) {
  return least_of(binomial(n + m, m));
}

}  // namespace scalemark
