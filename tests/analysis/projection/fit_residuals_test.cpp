// What a fit says of points that it does not hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/projection/curve_support.hpp"
#include "analysis/projection/model_fit.hpp"
#include "analysis/projection/projection.hpp"

namespace scalemark::fit_residuals_test {
namespace {
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// Four ranks are faster than two could be: no parameters allow that.
MeasuredCurve impossible() {
  return test::curve_of_throughputs({{1, 100}, {2, 120}, {4, 500}, {8, 500}});
}

TEST(FitResiduals, AreSmallWhereTheModelMadeTheCurve) {
  const ModelFit fit = fit_model(test::curve_from(test::truth(), {1, 2, 4, 8}), {});
  ASSERT_EQ(fit.residuals.size(), 4u);
  for (const Residual& one : fit.residuals) {
    EXPECT_LT(std::abs(one.relative), 0.015);
    EXPECT_NEAR(one.assumed, 0.0196, 1e-9);  // one launch a point: 1 % beside no repeats
    EXPECT_FALSE(one.is_miss());
  }
  EXPECT_EQ(fit.largest_miss(0.5), 0);
  EXPECT_THAT(fit.warnings, Not(Contains(HasSubstr("does not fit"))));
}

TEST(FitResiduals, AMissIsSaidAndWidensTheBand) {
  const auto curve = impossible();
  const ModelFit fit = fit_model(curve, {});
  const double of_four = std::abs(fit.residuals[2].relative);
  EXPECT_GT(of_four, 0.1);
  EXPECT_LE(of_four, fit.largest_miss(0.1));
  // Of a step that is ten times as long as all of these it is a tenth at most.
  EXPECT_LT(fit.largest_miss(6), 0.1 * fit.largest_miss(0.1) + 1e-9);
  EXPECT_THAT(fit.warnings, Contains(HasSubstr("the model does not fit 4 ranks")));
  ModelFit blind = fit;
  blind.residuals.clear();
  const StepWork work{32, curve.buckets};
  const Predicted wide = predict_step(fit, work, 8), narrow = predict_step(blind, work, 8);
  EXPECT_EQ(wide.value, narrow.value);
  EXPECT_GT(wide.band.hi / wide.band.lo, 1.1 * narrow.band.hi / narrow.band.lo);
}

TEST(FitResiduals, RepeatsThatDifferAllowMore) {
  auto curve = test::curve_from(test::truth(), {1, 2, 4});
  for (CurvePoint& point : curve.points)
    point.step_seconds = {0.9 * point.step_seconds[0], 1.1 * point.step_seconds[0]};
  for (const Residual& one : fit_model(curve, {}).residuals) EXPECT_GT(one.assumed, 0.1);
}

TEST(FitResiduals, AWeakCurveOfUnlikeBatchesIsSaid) {
  auto curve = test::curve_from(test::truth(), {1, 2, 4});
  const auto warnings = [&] { return fit_model(curve, {}).warnings; };
  EXPECT_THAT(warnings(), Not(Contains(HasSubstr("unlike batches"))));
  curve.points[1].batch_per_rank = 48;
  EXPECT_THAT(warnings(), Contains(HasSubstr("weak curve of unlike batches (32, 48 samples")));
  curve.scaling = Scaling::strong;
  EXPECT_THAT(warnings(), Not(Contains(HasSubstr("unlike batches"))));
}

}  // namespace
}  // namespace scalemark::fit_residuals_test
