// See curve_trend.hpp.
#include "analysis/projection/curve_trend.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/projection/model_fit.hpp"

namespace scalemark {
namespace {

/// Loss per doubling at which a curve is no longer nearly linear: its cause outweighs its course.
constexpr double kNearlyLinear = 0.12;

double doublings(std::int64_t from, std::int64_t to) {
  return std::log2(static_cast<double>(to) / static_cast<double>(from));
}

}  // namespace

bool has_unlike_batches(const std::vector<CurvePoint>& points) {
  return std::ranges::any_of(points, [&](const CurvePoint& point) {
    return point.batch_per_rank != points.front().batch_per_rank;
  });
}

CurveTrend curve_trend(const std::vector<CurvePoint>& points, Scaling scaling, bool link_known,
                       const TunedConstants& constants) {
  const CurvePoint &first = points.front(), &last = points.back();
  double products = 0, squares = 0;  // least squares through the first point, of relative errors
  for (const CurvePoint& point : points) {
    const double x = doublings(first.ranks, point.ranks);
    const double ratio = step_seconds_of(point) / step_seconds_of(first);
    products += x * (ratio - 1) / (ratio * ratio);
    squares += x * x / (ratio * ratio);
  }
  CurveTrend trend;
  trend.shown_loss = std::max(0., products / squares);
  trend.loss_per_doubling = std::max(0., products / (squares + constants.evidence));
  trend.last_step_seconds = step_seconds_of(last);
  trend.batch_per_rank = last.batch_per_rank;
  trend.most_ranks = last.ranks;
  trend.bend = constants.bend;
  if (scaling == Scaling::strong || has_unlike_batches(points)) return trend;
  const double of_model = link_known ? constants.model_share_known : constants.model_share_unknown;
  trend.share = (1 - of_model) * std::exp(-std::pow(trend.shown_loss / kNearlyLinear, 4));
  return trend;
}

double trend_seconds(const CurveTrend& trend, std::int64_t ranks) {
  const double unseen = std::max(0., doublings(trend.most_ranks, ranks));
  return trend.last_step_seconds *
         (1 + trend.loss_per_doubling * (unseen + trend.bend * unseen * unseen));
}

}  // namespace scalemark
