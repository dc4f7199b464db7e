// Joint tests by hand, against the single ones, and their level over all assignments.
#include "measure/joint_permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "measure/permutation.hpp"

namespace scalemark::joint_permutations_test {
namespace {

using Values = std::vector<double>;

Values noise(std::size_t n, std::mt19937_64& random, double centre = 0) {
  Values x(n);
  for (double& value : x) value = centre + std::normal_distribution<double>()(random);
  return x;
}

TEST(JointPlaces, TakeBothListsInTurn) {
  // By the mean 2 0 1 3, by the smallest 3 2 1 0: first 2, then 3, then 0 (2 is there), then 1.
  const JointStatistics statistics{{2, 3, 1, 4}, {9, 8, 7, 6}};
  EXPECT_EQ(joint_places(statistics, 4), (std::vector<std::size_t>{3, 4, 1, 2}));
  // 1 and 2 are equal in the second list: they come together, as the second of it.
  EXPECT_EQ(joint_places({{1, 4, 3, 2}, {4, 1, 1, 3}}, 4), (std::vector<std::size_t>{1, 4, 4, 2}));
}

TEST(JointPlaces, AreRightUpToTheMost) {
  std::mt19937_64 random(3);
  const JointStatistics statistics{noise(200, random), noise(200, random)};
  const auto all = joint_places(statistics, 200);
  const auto some = joint_places(statistics, 20);
  for (std::size_t i = 0; i < 200; ++i)
    if (all[i] <= 20)
      EXPECT_EQ(some[i], all[i]);
    else
      EXPECT_GT(some[i], 20U);
}

/// Of series that rose and of those that fell, by few repeats and by so many that some assignments
/// are drawn: one series has the p of its own test, several adjust it and never lower it.
TEST(JointTests, OfASeriesHaveAtLeastThePOfItsOwnTest) {
  std::mt19937_64 random(5);
  std::size_t raised = 0, values = 0;
  for (const std::size_t n : {4U, 5U, 9U, 12U, 18U})
    for (int i = 0; i < 12; ++i, values += 6) {
      Series x(3), base(3), fresh(3);
      for (std::size_t s = 0; s < 3; ++s) {
        const double centre = 0.5 * (i % 3 - 1);
        x[s] = noise(n, random, centre);
        base[s] = noise(n, random);
        fresh[s] = noise(n - i % 2, random, centre);
      }
      const JointTest one_of_pairs = joint_sign_flip_test({x[0]}), pairs = joint_sign_flip_test(x);
      const JointTest one_of_samples = joint_permutation_test({base[0]}, {fresh[0]});
      const JointTest samples = joint_permutation_test(base, fresh);
      for (std::size_t s = 0; s < 3; ++s) {
        const double pair_p = sign_flip_test(x[s], Alternative::less).p;
        const double sample_p = permutation_test(base[s], fresh[s], Alternative::less).p;
        if (s == 0) {
          EXPECT_EQ(one_of_pairs.p, pair_p);
          EXPECT_EQ(one_of_pairs.series_p.at(0), pair_p);
          EXPECT_EQ(one_of_samples.p, sample_p);
          EXPECT_EQ(one_of_samples.series_p.at(0), sample_p);
        }
        EXPECT_GE(pairs.series_p.at(s), pair_p) << n;
        EXPECT_GE(samples.series_p.at(s), sample_p) << n;
        raised += (pairs.series_p.at(s) > pair_p) + (samples.series_p.at(s) > sample_p);
      }
    }
  EXPECT_GT(raised, values / 2);  // they adjust
}

TEST(JointTests, BlameTheSeriesThatFell) {
  std::mt19937_64 random(7);
  Series pairs(5), base(5), fresh(5);
  for (std::size_t s = 0; s < 5; ++s) {
    pairs[s] = noise(10, random, s == 3 ? -6 : 1);
    base[s] = noise(7, random);
    fresh[s] = noise(7, random, s == 3 ? -6 : 1);
  }
  for (const JointTest& test : {joint_sign_flip_test(pairs), joint_permutation_test(base, fresh)}) {
    EXPECT_LE(test.p, 0.01);
    EXPECT_LE(test.series_p[3], 0.01);
    for (const std::size_t s : {0U, 1U, 2U, 4U}) EXPECT_GT(test.series_p[s], 0.05);
  }
}

/// All assignments of signs to the magnitudes of two series: a share of about p has at most p. It
/// is not exact, since the limits of winsorising depend on the signs.
TEST(JointTests, KeepTheirLevelNearly) {
  std::mt19937_64 random(9);
  const Series series{noise(7, random), noise(7, random)};
  Values p;
  for (unsigned turned = 0; turned < 128; ++turned) {
    Series flipped = series;
    for (auto& one : flipped)
      for (std::size_t i = 0; i < 7; ++i)
        if (turned >> i & 1U) one[i] = -one[i];
    p.push_back(joint_sign_flip_test(flipped).p);
  }
  for (const double level : {0.01, 0.05, 0.2}) {
    const auto refused = std::ranges::count_if(p, [=](double one) { return one <= level; });
    EXPECT_LE(static_cast<double>(refused) / 128, 1.25 * level);
    EXPECT_GE(static_cast<double>(refused) / 128, 0.75 * level - 2.01 / 128);
  }
}

TEST(JointTests, OfManyRepeatsAreSeededSamples) {
  std::mt19937_64 random(11);
  const Series pairs{noise(30, random, -0.4), noise(30, random)};
  EXPECT_EQ(joint_sign_flip_test(pairs).p, joint_sign_flip_test(pairs).p);
  // Two series that are the same tell as much as one, by tests that allow for two.
  const double alone = sign_flip_test(pairs[0], Alternative::less).p;
  EXPECT_GE(joint_sign_flip_test({pairs[0], pairs[0]}).p, alone);
  EXPECT_LE(joint_sign_flip_test({pairs[0], pairs[0]}).p, 2 * alone);
  const Series a{noise(15, random), noise(15, random)}, b{noise(15, random, -0.5), a[0]};
  EXPECT_EQ(joint_permutation_test(a, b).p, joint_permutation_test(a, b).p);
  EXPECT_DOUBLE_EQ(least_joint_sign_flip_p(8), 1. / 256);
  EXPECT_DOUBLE_EQ(least_joint_sign_flip_p(30), 1. / (kDrawnAssignments + 1));
  EXPECT_DOUBLE_EQ(least_joint_permutation_p(5, 5), 1. / 252);
}

}  // namespace
}  // namespace scalemark::joint_permutations_test
