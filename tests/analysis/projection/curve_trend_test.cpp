// What a curve shows by itself, by hand, and that nearly linear curves are not bent by the model.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/projection/curve_support.hpp"
#include "analysis/projection/model_fit.hpp"
#include "analysis/projection/projection.hpp"

namespace scalemark::curve_trend_test {
namespace {

/// Each doubling of the ranks keeps this share of the efficiency.
MeasuredCurve steady(double kept, const std::vector<std::int64_t>& ranks) {
  std::vector<std::pair<std::int64_t, double>> throughputs;
  for (const std::int64_t n : ranks) {
    const auto count = static_cast<double>(n);
    throughputs.push_back({n, 100 * count * std::pow(kept, std::log2(count))});
  }
  return test::curve_of_throughputs(throughputs);
}

constexpr TunedConstants kTuned;

CurveTrend trend_of(const MeasuredCurve& curve, std::int64_t ranks_per_node = 1) {
  return curve_trend(curve.points, curve.scaling, ranks_per_node, kTuned);
}

TEST(CurveTrend, ALossIsBelievedAsFarAsDoublingsShowIt) {
  auto curve = test::curve_of_throughputs({{1, 100}, {4, 400 / 1.1}});
  const CurveTrend trend = trend_of(curve);
  EXPECT_NEAR(trend.shown_loss, 0.05, 1e-12);
  // Two doublings, weighted as relative errors: 4 / 1.21 squared doublings.
  const double seen = 4 / 1.21;
  EXPECT_NEAR(trend.loss_per_doubling, 0.05 * seen / (seen + kTuned.evidence), 1e-12);
  EXPECT_LT(trend_of(steady(0.97, {1, 2})).loss_per_doubling,
            trend_of(steady(0.97, {1, 8})).loss_per_doubling);
}

TEST(CurveTrend, BeginsAtConstantEfficiency) {
  const CurveTrend trend = trend_of(steady(0.97, {1, 2, 4}));
  EXPECT_DOUBLE_EQ(trend_seconds(trend, 4, kTuned), trend.last_step_seconds);
  EXPECT_DOUBLE_EQ(trend_seconds(trend, 2, kTuned), trend.last_step_seconds);
  const double g = trend.loss_per_doubling, bend = kTuned.bend;
  EXPECT_NEAR(trend_seconds(trend, 16, kTuned) / trend.last_step_seconds, 1 + g * (2 + 4 * bend),
              1e-12);
  const CurveTrend none = trend_of(steady(1.02, {1, 2, 4}));  // faster than linear
  EXPECT_EQ(none.loss_per_doubling, 0);
  EXPECT_DOUBLE_EQ(trend_seconds(none, 64, kTuned), none.last_step_seconds);
}

TEST(CurveTrend, LeavingANodeIsLostOnce) {
  const CurveTrend trend = trend_of(steady(0.97, {1, 2, 4}), 4);
  EXPECT_FALSE(trend.leaves_node(4));
  EXPECT_TRUE(trend.leaves_node(8));
  EXPECT_NEAR(trend_seconds(trend, 16, kTuned) / trend.last_step_seconds,
              1 + 2 * trend.loss_per_doubling, 1e-12);
  EXPECT_FALSE(trend_of(steady(0.97, {1, 2, 4, 8}), 4).leaves_node(16));  // seen in the curve
}

TEST(CurveTrend, CountsWhereTheCurveIsNearlyLinear) {
  const auto linear = steady(0.99, {1, 2, 4}), steep = steady(0.5, {1, 2, 4});
  EXPECT_GT(trend_share(trend_of(linear), 8, kTuned), 0.99);
  EXPECT_LT(trend_share(trend_of(linear, 4), 8, kTuned), trend_share(trend_of(linear), 8, kTuned));
  EXPECT_LT(trend_share(trend_of(steep), 8, kTuned), 1e-6);
}

TEST(CurveTrend, SaysNothingWhereRanksDoUnlikeWork) {
  auto curve = steady(0.99, {1, 2, 4});
  curve.scaling = Scaling::strong;
  EXPECT_EQ(trend_share(trend_of(curve), 8, kTuned), 0);
  curve.scaling = Scaling::weak;
  EXPECT_FALSE(has_unlike_batches(curve.points));
  curve.points.back().batch_per_rank = 64;
  EXPECT_TRUE(has_unlike_batches(curve.points));
  EXPECT_EQ(trend_share(trend_of(curve), 8, kTuned), 0);
}

/// Largest relative error of the ranks that were not fitted.
double worst_error(MeasuredCurve curve, const std::vector<std::int64_t>& fitted) {
  ProjectionQuestions questions;
  questions.fit.fit_ranks = fitted;
  double worst = 0;
  for (const auto& point : project(curve, fit_model(curve, questions.fit), questions).points)
    if (point.held_out) worst = std::max(worst, std::abs(*point.error_percent));
  return worst;
}

TEST(CurveTrend, NearlyLinearCurvesGoOn) {
  // No nominal rate is known: a link of 10 Gbit/s, within a factor of 10, must not bend them.
  EXPECT_LT(worst_error(steady(0.97, {1, 2, 4, 8, 16}), {1, 2, 4, 8}), 3);
  EXPECT_LT(worst_error(steady(0.97, {1, 2, 4, 8, 16}), {1, 2, 4}), 3);
  EXPECT_LT(worst_error(steady(0.97, {1, 2, 4, 8}), {1, 2}), 6);  // two points: one doubling
  auto nodes = steady(0.97, {1, 2, 4, 8, 16});
  nodes.ranks_per_node = 8;  // the next rank count is the first that leaves the node
  EXPECT_LT(worst_error(nodes, {1, 2, 4, 8}), 5);
  EXPECT_LT(worst_error(steady(1, {1, 2, 4, 8, 16, 32}), {1, 2, 4}), 0.1);
}

TEST(CurveTrend, BeyondWhatCouldBeCheckedTheModelGoesOn) {
  const auto curve = steady(0.97, {1, 2, 4});
  const ModelFit fit = fit_model(curve, {});
  const StepWork work{32, curve.buckets};
  const double far = predict_step(fit, work, 64).value,
               farther = predict_step(fit, work, 65'536).value;
  EXPECT_GT(farther, far);
  EXPECT_LT(farther, trend_seconds(fit.trend, 65'536, kTuned));
}

TEST(CurveTrend, LeavesOtherNetworksToTheModel) {
  const auto curve = steady(0.97, {1, 2, 4, 8});
  const ModelFit fit = fit_model(curve, {});
  ProjectionQuestions questions;
  questions.ranks = {16};
  EXPECT_NE(project(curve, fit, questions).points[0].trend_seconds.value_or(1), 0);
  questions.link_gbit = 100;
  EXPECT_EQ(project(curve, fit, questions).points[0].trend_seconds.value_or(1), 0);
  questions.link_gbit.reset();
  questions.batch_per_rank = 64;
  EXPECT_EQ(project(curve, fit, questions).points[0].trend_seconds.value_or(1), 0);
}

}  // namespace
}  // namespace scalemark::curve_trend_test
