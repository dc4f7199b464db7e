// Computes a rank test of two spreads, and the tests of Student and Welch.
#include "measure/spreads.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

namespace scalemark {
namespace {

/// Up to this p the spreads may differ, and the test of the shift must allow for it.
constexpr double kMayDiffer = 0.2;
/// Sizes up to this ratio are alike.
constexpr double kAlikeSizes = 1.25;

std::vector<double> distances_from_median(std::span<const double> x) {
  const double centre = median(x);
  std::vector<double> away;
  for (const double value : x) away.push_back(std::abs(value - centre));
  std::ranges::sort(away);
  if (away.size() % 2 == 1) away.erase(away.begin());
  return away;
}

/// Returns the number of values of a below b, where equal ones count half.
double below(const std::vector<double>& a, const std::vector<double>& b) {
  double count = 0;
  for (const double one : b)
    for (const double other : a) count += other < one ? 1 : other == one ? 0.5 : 0;
  return count;
}

/// Robust standard deviation of one value.
double spread_of(std::span<const double> x) {
  return winsorised_sample(x).error * std::sqrt(static_cast<double>(x.size()));
}

bool are_alike(std::size_t n, std::size_t m) {
  return static_cast<double>(std::max(n, m)) <= kAlikeSizes * static_cast<double>(std::min(n, m));
}

}  // namespace

Spreads spreads_of(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> ours = distances_from_median(a), theirs = distances_from_median(b);
  const auto n = static_cast<double>(ours.size()), m = static_cast<double>(theirs.size());
  const double spread = spread_of(a), other = spread_of(b);
  Spreads spreads;
  if (spread > 0) spreads.ratio = other / spread;
  const double deviation = std::sqrt(n * m * (n + m + 1) / 12);
  const double score = std::abs(below(ours, theirs) - n * m / 2) / deviation;
  spreads.p = 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), score));
  return spreads;
}

double StudentTest::greater_p(double assumed) const {
  const boost::math::students_t student(degrees_of_freedom);
  return boost::math::cdf(boost::math::complement(student, (shift - assumed) / error));
}

double StudentTest::least_shift(double level) const {
  const boost::math::students_t student(degrees_of_freedom);
  return shift - error * boost::math::quantile(boost::math::complement(student, level));
}

namespace {

/// Mean, its standard error and the degrees of freedom, without any limit.
WinsorisedSample plain_sample(std::span<const double> x) {
  const auto n = static_cast<double>(x.size());
  return {mean(x), standard_deviation(x) / std::sqrt(n), n - 1};
}

std::optional<StudentTest> test_of(const WinsorisedSample& ours, const WinsorisedSample& theirs) {
  const double square = ours.error * ours.error, other = theirs.error * theirs.error;
  if (!(square + other > 0)) return std::nullopt;
  StudentTest test;
  test.shift = theirs.mean - ours.mean;
  test.error = std::sqrt(square + other);
  test.degrees_of_freedom =
      std::pow(square + other, 2) /
      (square * square / ours.degrees_of_freedom + other * other / theirs.degrees_of_freedom);
  return test;
}

bool enough(std::span<const double> a, std::span<const double> b) {
  return std::min(a.size(), b.size()) >= kLeastStudentValues;
}

}  // namespace

bool may_differ(std::span<const double> a, std::span<const double> b) {
  return !are_alike(a.size(), b.size()) || spreads_of(a, b).p <= kMayDiffer;
}

std::optional<StudentTest> student_test(std::span<const double> x) {
  const WinsorisedSample sample = plain_sample(x);
  if (!enough(x, x) || !(sample.error > kRounding * std::abs(sample.mean))) return std::nullopt;
  return StudentTest{sample.mean, sample.error, sample.degrees_of_freedom};
}

std::optional<StudentTest> welch_shift(std::span<const double> a, std::span<const double> b) {
  return test_of(plain_sample(a), plain_sample(b));
}

std::optional<StudentTest> welch_test(std::span<const double> a, std::span<const double> b) {
  if (!enough(a, b) || !are_alike(a.size(), b.size())) return std::nullopt;
  return welch_shift(a, b);
}

std::optional<StudentTest> winsorised_welch_test(std::span<const double> a,
                                                 std::span<const double> b) {
  if (!enough(a, b)) return std::nullopt;
  return test_of(winsorised_sample(a), winsorised_sample(b));
}

}  // namespace scalemark
