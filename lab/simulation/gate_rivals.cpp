// Computes the tests that others use.
#include "lab/simulation/gate_rivals.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>

#include "measure/permutation.hpp"
#include "measure/significance.hpp"
#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark::gate {
namespace {

using Values = std::vector<double>;

constexpr int kStudentisedDraws = 1'999;

double student_lower(double t, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::students_t(degrees_of_freedom), t);
}

Values differences(const Values& base, const Values& fresh) {
  Values pairs;
  for (std::size_t i = 0; i < base.size(); ++i) pairs.push_back(fresh[i] - base[i]);
  return pairs;
}

/// Mann and Whitney 1947: the share of choices of m ranks with at most the sum of the new ones.
double mann_whitney(const Values& base, const Values& fresh) {
  static const CountedAssignments assignments;
  Values all = base;
  all.insert(all.end(), fresh.begin(), fresh.end());
  Values sorted = all;
  std::ranges::sort(sorted);
  Values ranks;
  double sum = 0;
  for (const double value : all) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<double>((low - sorted.begin()) + (high - sorted.begin()) + 1) / 2);
  }
  for (std::size_t i = base.size(); i < all.size(); ++i) sum += ranks[i];
  const auto choices = assignments.of_samples(base.size(), fresh.size());
  const double drawn = all.size() > kMostExactValues ? 1 : 0;
  return (drawn + choices->at_most(ranks, sum + 1e-6)) / (drawn + choices->size());
}

double square(double x) { return x * x; }

double welch(const Values& base, const Values& fresh) {
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(fresh.size());
  const double a = square(standard_deviation(base)) / n, b = square(standard_deviation(fresh)) / m;
  return student_lower((mean(fresh) - mean(base)) / std::sqrt(a + b),
                       square(a + b) / (a * a / (n - 1) + b * b / (m - 1)));
}

double paired_t(const Values& base, const Values& fresh) {
  const Values pairs = differences(base, fresh);
  const StandardError error = paired_error(pairs);
  return student_lower(mean(pairs) / error.value, error.degrees_of_freedom);
}

double welch_statistic(std::span<const double> base, std::span<const double> fresh) {
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(fresh.size());
  return (mean(fresh) - mean(base)) /
         std::sqrt(square(standard_deviation(base)) / n + square(standard_deviation(fresh)) / m);
}

/// Janssen 1997, "Studentized permutation tests for non-i.i.d. hypotheses".
double studentised_permutation(const Values& base, const Values& fresh) {
  std::mt19937_64 random(1);
  Values all = base;
  all.insert(all.end(), fresh.begin(), fresh.end());
  const double observed = welch_statistic(base, fresh) + 1e-9;
  int count = 1;
  for (int draw = 0; draw < kStudentisedDraws; ++draw) {
    std::ranges::shuffle(all, random);
    count += welch_statistic(std::span(all).first(base.size()),
                             std::span(all).subspan(base.size())) <= observed;
  }
  return static_cast<double>(count) / (kStudentisedDraws + 1);
}

}  // namespace

std::vector<Rival> rivals() {
  return {{"scalemark", false,
           [](const Values& base, const Values& fresh) {
             return permutation_test(base, fresh, Alternative::less).p;
           }},
          {"scalemark, pairs", true,
           [](const Values& base, const Values& fresh) {
             return sign_flip_test(differences(base, fresh), Alternative::less).p;
           }},
          {"Mann-Whitney", false, mann_whitney},
          {"Welch", false, welch},
          {"paired t", true, paired_t},
          {"studentised permutation", false, studentised_permutation}};
}

}  // namespace scalemark::gate
