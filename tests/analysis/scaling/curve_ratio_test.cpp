// Two curves side by side, with hand-computed numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/scaling/scaling.hpp"

namespace scalemark::curve_ratio_test {
namespace {

record::CurveRepeat repeat(double rate, bool baseline) {
  record::CurveRepeat made;
  made.throughput = rate;
  made.baseline = baseline;
  return made;
}

record::ScalingPoint point(int ranks, double throughput, const std::vector<double>& rounds) {
  record::ScalingPoint made;
  made.ranks = ranks;
  made.throughput = throughput;
  for (const double rate : rounds) made.repeats.push_back(repeat(rate, false));
  made.repeats.push_back(repeat(1e6, true));
  return made;
}

ScalingCurve curve(const std::vector<record::ScalingPoint>& points) {
  ScalingCurve made;
  made.points = points;
  return made;
}

TEST(CurveRatio, IsOfThroughputsAtEveryRankCount) {
  const auto ratios = curve_ratios(curve({point(1, 20, {20, 20}), point(2, 30, {30, 30})}),
                                   curve({point(1, 10, {10, 10}), point(2, 20, {20, 20})}));
  ASSERT_EQ(ratios.size(), 2u);
  EXPECT_EQ(ratios[1].ranks, 2);
  EXPECT_DOUBLE_EQ(ratios[0].ratio, 2);
  EXPECT_DOUBLE_EQ(ratios[1].ratio, 1.5);
}

TEST(CurveRatio, TheIntervalIsOfRatiosPairedByRound) {
  // Ratios 1.6 and 2, although both curves halve from one round to the next.
  const auto ratios =
      curve_ratios(curve({point(1, 12, {16, 10})}), curve({point(1, 6.5, {10, 5})}));
  const double half = 12.70620474 * std::log(2 / 1.6) / 2, center = std::sqrt(1.6 * 2);
  ASSERT_TRUE(ratios[0].ci95);
  EXPECT_NEAR(ratios[0].ci95->lo, center * std::exp(-half), 1e-6);
  EXPECT_NEAR(ratios[0].ci95->hi, center * std::exp(half), 1e-6);
}

TEST(CurveRatio, OfOneRepeatOrUnequalOnesHasNoInterval) {
  EXPECT_FALSE(
      curve_ratios(curve({point(1, 2, {2})}), curve({point(1, 1, {1})}))[0].ci95.has_value());
  EXPECT_FALSE(curve_ratios(curve({point(1, 2, {2, 2, 2})}), curve({point(1, 1, {1, 1})}))[0]
                   .ci95.has_value());
}

TEST(CurveRatio, RepeatsThatHaveANumberArePairedByIt) {
  record::ScalingPoint one = point(1, 12, {16, 10}), other = point(1, 6.5, {5, 10});
  one.repeats[0].repeat = other.repeats[1].repeat = 1;
  one.repeats[1].repeat = other.repeats[0].repeat = 2;
  const auto ratios = curve_ratios(curve({one}), curve({other}));
  ASSERT_TRUE(ratios[0].ci95);
  EXPECT_NEAR(ratios[0].ci95->lo * ratios[0].ci95->hi, 1.6 * 2, 1e-6);
}

TEST(CurveRatio, LeavesOutWhatOnlyOneCurveHas) {
  const auto ratios = curve_ratios(curve({point(1, 2, {2}), point(4, 8, {8})}),
                                   curve({point(2, 3, {3}), point(4, 4, {4})}));
  ASSERT_EQ(ratios.size(), 1u);
  EXPECT_EQ(ratios[0].ranks, 4);
  EXPECT_DOUBLE_EQ(ratios[0].ratio, 2);
}

}  // namespace
}  // namespace scalemark::curve_ratio_test
