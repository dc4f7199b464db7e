// When a loss trace counts as diverged.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "measure/stopping.hpp"

namespace scalemark::divergence_test {
namespace {

/// `head` steps at 2, then `tail` steps at `level`.
std::vector<double> stepped(std::size_t head, std::size_t tail, double level) {
  std::vector<double> loss(head, 2.);
  loss.insert(loss.end(), tail, level);
  return loss;
}

TEST(Divergence, TheScoreIsTheRiseInUnitsOfNoise) {
  // Without noise the unit is 1 % of the first level.
  EXPECT_NEAR(divergence_score(stepped(40, 20, 2.1)), 0.1 / 0.02, 1e-12);
  EXPECT_FALSE(diverged(stepped(40, 20, 2.19)));
  EXPECT_TRUE(diverged(stepped(40, 20, 2.21)));
  // Alternating by +-1: median absolute deviation 1, median difference 2.
  std::vector<double> loss;
  for (int i = 0; i < 100; ++i) loss.push_back((i < 50 ? 10 : 40) + (i % 2 ? 1 : -1));
  EXPECT_NEAR(divergence_score(loss), 30 / (1.4826 * std::sqrt(2.)), 1e-12);
}

TEST(Divergence, OnlyTheEndCounts) {
  EXPECT_EQ(divergence_score(std::vector<double>(1000, 3.)), 0);
  EXPECT_EQ(divergence_score(std::vector<double>(1000, 0.)), 0);
  std::vector<double> spike(200, 1.);
  spike[150] = 1e9;
  EXPECT_EQ(divergence_score(spike), 0);
  auto recovered = stepped(100, 30, 50);
  recovered.insert(recovered.end(), 20, 2.);
  EXPECT_EQ(divergence_score(recovered), 0);
  recovered.resize(recovered.size() - 11);  // 11 of the last 20 steps are still at 50
  EXPECT_TRUE(diverged(recovered));
}

TEST(Divergence, IsNotJudgedBelowFortySteps) {
  EXPECT_EQ(divergence_score({}), 0);
  EXPECT_FALSE(diverged(stepped(20, 19, 1e6)));
  EXPECT_TRUE(diverged(stepped(20, 20, 1e6)));
}

TEST(Divergence, AValueThatIsNotFiniteDivergesAlways) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_TRUE(diverged(std::vector<double>{1, bad, 1}));
}

}  // namespace
}  // namespace scalemark::divergence_test
