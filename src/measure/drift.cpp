// See drift.hpp.
#include "measure/drift.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

namespace scalemark {
namespace {

constexpr double kMostAutocorrelation = 0.9;

/// Half the mean square of the differences over `lag` places, without the `lag` largest, made good
/// for a normal series.
double half_square(std::span<const double> values, std::size_t lag) {
  std::vector<double> differences;
  for (std::size_t i = lag; i < values.size(); ++i)
    differences.push_back(values[i] - values[i - lag]);
  const double usual = median(differences);
  for (double& d : differences) d = (d - usual) * (d - usual);
  std::ranges::sort(differences);
  const double dropped = static_cast<double>(lag) / static_cast<double>(differences.size());
  differences.resize(differences.size() - lag);
  const boost::math::normal normal;
  const double cut = boost::math::quantile(normal, 1 - dropped / 2);
  const double left = 1 - 2 * cut * boost::math::pdf(normal, cut) / (1 - dropped);
  return mean(differences) / left / 2;
}

}  // namespace

std::optional<RunDrift> find_drift(std::span<const double> values) {
  if (values.size() < kLeastDrift || !(mean(values) > 0)) return std::nullopt;
  const std::size_t third = values.size() / 3;
  const auto n = static_cast<double>(values.size());
  RunDrift drift;
  const double near = half_square(values, 1);
  if (near > 0)
    drift.autocorrelation = std::clamp(half_square(values, 2) / near - 1, 0., kMostAutocorrelation);
  const double alike = (1 + drift.autocorrelation) / (1 - drift.autocorrelation);
  const double variance = near / (1 - drift.autocorrelation) * alike;
  const double error = std::sqrt(2 * variance / static_cast<double>(third)) / mean(values);
  drift.change = (mean(values.last(third)) - mean(values.first(third))) / mean(values);
  const boost::math::students_t t(std::max(2., (n / 2 - 1) / alike));
  if (error > 0)
    drift.p = 2 * boost::math::cdf(boost::math::complement(t, std::abs(drift.change) / error));
  else
    drift.p = drift.change == 0 ? 1 : 0;
  const double half = boost::math::quantile(t, 0.975) * error;
  drift.ci95 = {drift.change - half, drift.change + half};
  return drift;
}

}  // namespace scalemark
