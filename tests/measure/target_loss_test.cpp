// When a loss has come down.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "measure/stopping.hpp"

namespace scalemark::target_loss_test {
namespace {

TEST(TargetLoss, TheMedianOfFiveDecides) {
  const std::vector<double> losses{3, 2, 1, 0.5, 0.4, 0.3, 0.2};
  EXPECT_EQ(steps_to_loss(losses, 1), 5u);
  EXPECT_EQ(steps_to_loss(losses, 0.5), 6u);
  EXPECT_EQ(steps_to_loss(losses, 0.4), 7u);
  EXPECT_EQ(steps_to_loss(losses, 0.39), std::nullopt);
}

TEST(TargetLoss, OneLowLossIsLuck) {
  EXPECT_FALSE(reaches_loss(std::vector<double>{3, 3, 0.1, 3, 0.1}, 1));
  EXPECT_TRUE(reaches_loss(std::vector<double>{3, 0.1, 0.1, 3, 0.1}, 1));
}

TEST(TargetLoss, NeedsFiveSteps) {
  EXPECT_FALSE(reaches_loss(std::vector<double>(4, 0.1), 1));
  EXPECT_TRUE(reaches_loss(std::vector<double>(5, 0.1), 1));
  EXPECT_EQ(steps_to_loss(std::vector<double>{}, 1), std::nullopt);
}

TEST(TargetLoss, LooksAtTheLastStepsOnly) {
  std::vector<double> losses(100, 0.1);
  losses.insert(losses.end(), 3, 9);
  EXPECT_FALSE(reaches_loss(losses, 1));
  EXPECT_EQ(steps_to_loss(losses, 1), 5u);
}

TEST(TargetLoss, ALossThatIsNotFiniteReachesNothing) {
  EXPECT_FALSE(reaches_loss(
      std::vector<double>{0.1, 0.1, 0.1, 0.1, std::numeric_limits<double>::quiet_NaN()}, 1));
}

}  // namespace
}  // namespace scalemark::target_loss_test
