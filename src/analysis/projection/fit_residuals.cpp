// See fit_residuals.hpp.
#include "analysis/projection/fit_residuals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// Of the repeats within points, relative; 0 where no point has two.
double pooled_deviation(const std::vector<CurvePoint>& points) {
  double squares = 0, freedom = 0;
  for (const CurvePoint& point : points) {
    std::vector<double> logs;
    for (const double seconds : point.step_seconds) logs.push_back(std::log(seconds));
    const auto n = static_cast<double>(logs.size());
    squares += std::pow(standard_deviation(logs), 2) * (n - 1);
    freedom += n - 1;
  }
  return freedom > 0 ? std::sqrt(squares / freedom) : 0;
}

}  // namespace

std::vector<double> log_variances(const std::vector<CurvePoint>& points) {
  const double repeats = pooled_deviation(points);
  std::vector<double> of;
  for (const CurvePoint& point : points)
    of.push_back(repeats * repeats / static_cast<double>(point.step_seconds.size()) +
                 kLaunchDeviation * kLaunchDeviation);
  return of;
}

std::vector<Residual> residuals_of(const ModelFit& fit) {
  std::vector<Residual> residuals;
  constexpr double kIn95Of100 = 1.96;
  const auto variance = log_variances(fit.points);
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    const CurvePoint& point = fit.points[i];
    const double lateness = expected_maximum_of_normals(static_cast<double>(point.ranks));
    std::vector<double> steps;
    for (const ModelDraw& draw : fit.draws)
      steps.push_back(step_cost(draw.parameters, {point.batch_per_rank, fit.buckets}, point.ranks,
                                lateness, fit.algorithm, compute_factor(fit, draw, point.ranks))
                          .seconds());
    residuals.push_back(
        {step_seconds_of(point) / median(steps) - 1, kIn95Of100 * std::sqrt(variance[i])});
  }
  return residuals;
}

void warn_of_curve(ModelFit& fit, const MeasuredCurve& curve) {
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    const Residual& one = fit.residuals[i];
    if (one.is_miss())
      fit.warnings.push_back(fmt::format(
          "the model does not fit {} ranks: the measured step is {:+.1f} % off, where repeats and "
          "launches let expect {:.1f} %; bands are wider by as much, and the curve may have "
          "a cause that the model does not know",
          fit.points[i].ranks, 100 * one.relative, 100 * one.assumed));
  }
  if (curve.scaling == Scaling::weak && has_unlike_batches(curve.points)) {
    std::set<double> batches;
    for (const CurvePoint& point : curve.points) batches.insert(point.batch_per_rank);
    fit.warnings.push_back(fmt::format(
        "a weak curve of unlike batches ({} samples a rank): its efficiencies mix ranks "
        "and batch; measure it with one --batch_size",
        fmt::join(batches, ", ")));
  }
}

double ModelFit::largest_miss(double step_seconds) const {
  double largest = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i)
    if (residuals[i].is_miss())
      largest = std::max(largest, std::abs(residuals[i].relative) *
                                      std::min(1., step_seconds_of(points[i]) / step_seconds));
  return largest;
}

}  // namespace scalemark
