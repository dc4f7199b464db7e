// A point is the fastest only where its launches show that.
#include <gtest/gtest.h>

#include "analysis/compare/point_test.hpp"

namespace scalemark::fastest_test {
namespace {

/// The launches of several points of one sweep, by their rates.
class Sweep {
 public:
  explicit Sweep(const std::vector<std::vector<double>>& rates) {
    std::size_t launches = 0;
    for (const auto& point : rates) launches += point.size();
    launches_.reserve(launches);  // pointers to them stay
    for (const auto& point : rates) {
      std::vector<const MeasuredLaunch*> of_point;
      for (std::size_t i = 0; i < point.size(); ++i) {
        MeasuredLaunch& launch = launches_.emplace_back();
        launch.sweep = "here";
        launch.repeat = static_cast<std::int64_t>(i) + 1;
        launch.repeats = {{100, 100 / point[i]}};
        of_point.push_back(&launch);
      }
      points.push_back(repeats_of(of_point, "throughput", false));
    }
  }
  std::vector<Repeats> points;

 private:
  std::vector<MeasuredLaunch> launches_;
};

TEST(Fastest, NeedsLaunchesOfTwoPoints) {
  EXPECT_FALSE(find_fastest({}));
  EXPECT_FALSE(find_fastest(Sweep({{10, 11}, {}}).points));
}

TEST(Fastest, OfFewRepeatsIsNotShownHoweverLargeTheFactor) {
  const auto fastest = find_fastest(Sweep({{10, 10, 10}, {20, 20, 20}, {5, 5, 5}}).points);
  ASSERT_TRUE(fastest);
  EXPECT_EQ(fastest->point, 1u);
  EXPECT_FALSE(fastest->shown);
  EXPECT_TRUE(fastest->too_few);
  EXPECT_EQ(fastest->repeats_needed, 7u);  // 2 x 2 / 2^7 < 0.05 < 2 x 2 / 2^6
}

TEST(Fastest, IsShownAgainstEveryOtherPoint) {
  const auto fastest = find_fastest(Sweep({{10, 10.1, 10.2, 10, 10.1, 10.3, 10.2},
                                           {11, 11.1, 11.2, 11.1, 11, 11.3, 11.1},
                                           {9, 9.1, 9.2, 9.1, 9, 9.3, 9.1}})
                                        .points);
  ASSERT_TRUE(fastest);
  EXPECT_EQ(fastest->point, 1u);
  EXPECT_TRUE(fastest->shown);
  EXPECT_NEAR(fastest->p, 2 * 2 / 128.0, 1e-12);
}

TEST(Fastest, IsNotShownBesideAPointThatIsAsFast) {
  const auto fastest = find_fastest(
      Sweep({{5, 5, 5, 5, 5, 5, 5}, {10, 11, 10, 11, 10, 11, 10}, {11, 10, 11, 10, 11, 10, 11}})
          .points);
  ASSERT_TRUE(fastest);
  EXPECT_FALSE(fastest->shown);
  EXPECT_FALSE(fastest->too_few);
  EXPECT_EQ(fastest->as_fast, 1u);
}

}  // namespace
}  // namespace scalemark::fastest_test
