// Answers of crafted sets: what refutes a pass stands in them.
#include "measure/shift_answer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace scalemark::shift_answer_test {
namespace {

using Values = std::vector<double>;

/// Launches with noise of 0.5 %, every `slow_every`-th at half speed.
Values launches(std::size_t n, std::mt19937_64& random, std::size_t slow_every = 0) {
  Values x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = 0.005 * std::normal_distribution<double>()(random) -
           (slow_every > 0 && i % slow_every == 0 ? std::log(2.) : 0);
  return x;
}

Values differences(const Values& base, const Values& fresh) {
  Values pairs;
  for (std::size_t i = 0; i < base.size(); ++i) pairs.push_back(fresh[i] - base[i]);
  return pairs;
}

const double kTwoPercent = std::log1p(-0.02);

TEST(ShiftAnswer, OfAlikeSetsExcludesASlowdown) {
  std::mt19937_64 random(3);
  const Values base = launches(20, random), fresh = launches(20, random);
  for (const ShiftAnswer& answer :
       {answer_of_samples(base, fresh), answer_of_pairs(differences(base, fresh))}) {
    EXPECT_TRUE(answer.excludes(kTwoPercent));
    EXPECT_FALSE(answer.refuted_by_mean());
    EXPECT_TRUE(answer.slow.fresh.empty());
    EXPECT_NEAR(answer.centre, answer.bare, 0.002);
  }
}

/// A quarter of the new launches is half as fast: the robust mean does not see it, the bare one
/// does, or the interval holds it for possible.
TEST(ShiftAnswer, OfASlowModeExcludesNothing) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20; ++i) {
    const Values base = launches(20, random), fresh = launches(20, random, 4);
    const ShiftAnswer samples = answer_of_samples(base, fresh);
    const ShiftAnswer pairs = answer_of_pairs(differences(base, fresh));
    EXPECT_TRUE(samples.refuted_by_mean());
    EXPECT_LT(pairs.interval->interval.lo,
              pairs.bare);  // 5 signs of 20 are not enough to refuse it
    for (const ShiftAnswer& answer : {samples, pairs}) {
      EXPECT_FALSE(answer.excludes(kTwoPercent));
      EXPECT_EQ(answer.slow.fresh.size(), 5U);
      EXPECT_LT(answer.bare, -0.1);
      EXPECT_GT(answer.centre, -0.02);
    }
  }
}

/// Slow launches of the base speak for the new build, not against it.
TEST(ShiftAnswer, OfASlowModeOfTheBaseIsNotRefuted) {
  std::mt19937_64 random(7);
  const ShiftAnswer answer = answer_of_samples(launches(20, random, 4), launches(20, random));
  EXPECT_FALSE(answer.refuted_by_mean());
  EXPECT_EQ(answer.slow.base.size(), 5U);
  EXPECT_EQ(answer.slow.p, 1);
}

TEST(ShiftAnswer, SaysWhetherSpreadsDiffer) {
  std::mt19937_64 random(9);
  Values noisy = launches(12, random);
  for (double& value : noisy) value *= 6;
  EXPECT_TRUE(answer_of_samples(launches(12, random), noisy).spreads->differ());
  EXPECT_FALSE(answer_of_samples(launches(12, random), launches(12, random)).spreads->differ());
  EXPECT_FALSE(answer_of_samples(launches(4, random), noisy).spreads);
  EXPECT_FALSE(answer_of_pairs(noisy).spreads);
}

TEST(ShiftAnswer, OfFewValuesExcludesNothing) {
  EXPECT_FALSE(answer_of_pairs(Values{0, 0.001}).excludes(kTwoPercent));
  EXPECT_FALSE(answer_of_samples(Values{0}, Values{0}).excludes(kTwoPercent));
}

}  // namespace
}  // namespace scalemark::shift_answer_test
