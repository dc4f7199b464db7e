// Two curves side by side, with hand-computed numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/scaling/scaling.hpp"

namespace scalemark::curve_ratio_test {
namespace {

Json point(int ranks, double throughput, const std::vector<double>& rounds) {
  Json made = {{"ranks", ranks}, {"throughput", throughput}, {"repeats", Json::array()}};
  for (const double rate : rounds)
    made["repeats"].push_back({{"baseline", false}, {"throughput", rate}});
  made["repeats"].push_back({{"baseline", true}, {"throughput", 1e6}});
  return made;
}

Json curve(const std::vector<Json>& points) { return {{"points", points}}; }

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
  Json one = point(1, 12, {16, 10}), other = point(1, 6.5, {5, 10});
  for (Json* both : {&one, &other}) {
    (*both)["repeats"][0]["repeat"] = both == &one ? 1 : 2;
    (*both)["repeats"][1]["repeat"] = both == &one ? 2 : 1;
  }
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
