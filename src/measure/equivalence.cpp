// See equivalence.hpp.
#include "measure/equivalence.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "measure/permutation.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostRepeats = 1'000'000;

double equivalence_power(std::size_t n, double deviation, bool paired, const Interval& margin,
                         double alpha) {
  const double values = static_cast<double>(n), samples = paired ? 1 : 2;
  const double error = deviation * std::sqrt(samples / values);
  if (error == 0) return 1;
  const boost::math::students_t student(samples * (values - 1));
  const double t = boost::math::quantile(student, 1 - alpha);
  const double above = boost::math::cdf(student, -margin.lo / error - t);
  const double below = boost::math::cdf(student, margin.hi / error - t);
  return above + below - 1;
}

}  // namespace

double sign_flip_equivalence_p(std::span<const double> differences, const Interval& margin,
                               const CountedAssignments& assignments) {
  return std::max(
      sign_flip_test(minus(differences, margin.lo), Alternative::greater, assignments).p,
      sign_flip_test(minus(differences, margin.hi), Alternative::less, assignments).p);
}

double permutation_equivalence_p(std::span<const double> a, std::span<const double> b,
                                 const Interval& margin, const CountedAssignments& assignments) {
  return std::max(permutation_test(a, minus(b, margin.lo), Alternative::greater, assignments).p,
                  permutation_test(a, minus(b, margin.hi), Alternative::less, assignments).p);
}

std::optional<std::size_t> repeats_for_equivalence(double deviation, bool paired,
                                                   const Interval& margin, double alpha,
                                                   double power) {
  if (!(margin.lo < 0) || !(margin.hi > 0)) return std::nullopt;
  const auto enough = [&](std::size_t n) {
    return equivalence_power(n, deviation, paired, margin, alpha) >= power;
  };
  std::size_t low = 1, high = 2;  // low: too few
  while (!enough(high)) {
    low = high;
    high *= 2;
    if (high > kMostRepeats) return std::nullopt;
  }
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace scalemark
