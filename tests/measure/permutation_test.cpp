// Permutation tests against counts by hand, published data and brute force (numpy where stated).
#include "measure/permutation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "measure/hodges_lehmann.hpp"
#include "measure/statistics.hpp"

namespace scalemark::permutations_test {
namespace {

using Values = std::vector<double>;
using enum Alternative;

/// Darwin's crossed less self-fertilised maize, eighths of an inch (Fisher 1935, section 21).
/// Values are limited to 34, twice the median distance from the median, 24.
const Values kDarwin{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};
/// Permeability of membranes at term and earlier (Hollander and Wolfe 1973, table 4.1).
const Values kTerm{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
const Values kEarly{1.15, 0.88, 0.90, 0.74, 1.21};

Values noise(std::size_t n, std::mt19937_64& random) {
  Values x(n);
  for (double& value : x) value = std::normal_distribution<double>()(random);
  return x;
}

/// Without tails: nothing to winsorise, so that theory of means holds. Variance 1.
Values uniform(std::size_t n, std::mt19937_64& random) {
  const double half = std::sqrt(3.);
  Values x(n);
  for (double& value : x) value = std::uniform_real_distribution<double>(-half, half)(random);
  return x;
}

TEST(SignFlipTest, OfThreeDifferencesByHand) {
  // Signs of 1 2 4: sums 7 5 3 1 -1 -3 -5 -7. Observed 1 + 2 + 4 and -1 - 2 + 4.
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{1, 2, 4}, greater).p, 1. / 8);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{1, 2, 4}, less).p, 1);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{1, 2, 4}, two_sided).p, 2. / 8);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{-1, -2, 4}, greater).p, 4. / 8);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{-1, -2, -4}, less).p, 1. / 8);
}

TEST(SignFlipTest, OfDarwinsMaizeIsThatOfBruteForce) {
  const PermutationTest test = sign_flip_test(kDarwin, greater);
  // numpy: Student's p is 0.0249; Fisher's count of the bare sums is 863
  EXPECT_DOUBLE_EQ(test.p, 4. / 3 * 286 / 32768);
  EXPECT_DOUBLE_EQ(sign_flip_test(kDarwin, two_sided).p, 4. / 3 * 572 / 32768);
  EXPECT_DOUBLE_EQ(test.least_p, 1. / 32768);
  EXPECT_TRUE(test.exact);
}

TEST(SignFlipTest, CountsTiesThatRoundingHides) {
  // 0.1 + 0.2 is not 0.3 in binary: {0.1, 0.2, -0.3} sums to 0, as does its opposite.
  // Sums: 0.6, 0, 0.2, -0.4, 0.4, -0.2, 0, -0.6: five of eight are at least 0.
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{0.1, 0.2, -0.3}, greater).p, 5. / 8);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values{0, 0, 0, 0}, two_sided).p, 1);
}

TEST(SignFlipTest, OfManyValuesIsASeededSample) {
  std::mt19937_64 random(3);
  Values x = uniform(40, random);
  for (double& value : x) value += 0.3;
  const PermutationTest test = sign_flip_test(x, two_sided, 7);
  EXPECT_FALSE(test.exact);
  EXPECT_DOUBLE_EQ(test.p, sign_flip_test(x, two_sided, 7).p);
  // Of the normal approximation, within four standard errors of the sample.
  const Values kept = limited(x, 0, winsor_limit(x));
  double squares = 0;
  for (const double value : kept) squares += value * value;
  const double expected = std::erfc(std::abs(mean(kept)) * 40 / std::sqrt(2 * squares));
  EXPECT_NEAR(test.p, expected, 4 * 2 * std::sqrt(expected / 2 / kDrawnAssignments) + 0.005);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values(40, 1.), greater).p, 1. / (kDrawnAssignments + 1));
}

TEST(PermutationTest, OfFourValuesByHand) {
  // 6 divisions of 1 2 3 4; only {3, 4} has the sum 7.
  EXPECT_DOUBLE_EQ(permutation_test(Values{1, 2}, Values{3, 4}, greater).p, 1. / 6);
  EXPECT_DOUBLE_EQ(permutation_test(Values{1, 2}, Values{3, 4}, two_sided).p, 2. / 6);
  EXPECT_DOUBLE_EQ(permutation_test(Values{1, 2}, Values{3, 4}, less).p, 1);
  EXPECT_DOUBLE_EQ(permutation_test(Values{1, 4}, Values{2, 3}, greater).p, 4. / 6);  // ties
  EXPECT_DOUBLE_EQ(permutation_test(Values{1}, Values{2, 3, 4}, greater).p, 1. / 4);
}

TEST(PermutationTest, OfUnequalSamplesIsThatOfBruteForce) {
  const PermutationTest test = permutation_test(kTerm, kEarly, less);
  EXPECT_DOUBLE_EQ(test.p, 1.125 * 201 / 3003);  // the p of the ranks, 0.127, is larger
  EXPECT_DOUBLE_EQ(permutation_test(kTerm, kEarly, greater).p, 1);
  EXPECT_DOUBLE_EQ(permutation_test(kTerm, kEarly, two_sided).p, 1.125 * 402 / 3003);
  EXPECT_DOUBLE_EQ(test.least_p, 1. / 3003);
}

TEST(PermutationTest, OfManyValuesIsASeededSample) {
  std::mt19937_64 random(5);
  const Values a = uniform(40, random);
  Values b = uniform(50, random);
  for (double& value : b) value += 0.3;
  const PermutationTest test = permutation_test(a, b, two_sided);
  EXPECT_FALSE(test.exact);
  EXPECT_DOUBLE_EQ(test.p, permutation_test(a, b, two_sided).p);
  // Of the normal approximation with the variance of all values.
  Values all = a;
  all.insert(all.end(), b.begin(), b.end());
  const double error = standard_deviation(all) * std::sqrt(1. / 40 + 1. / 50);
  const double expected = std::erfc(std::abs(mean(b) - mean(a)) / error / std::sqrt(2));
  EXPECT_NEAR(test.p, expected, 4 * 2 * std::sqrt(expected / 2 / kDrawnAssignments) + 0.005);
  EXPECT_GT(expected, 0.001);
  EXPECT_LT(expected, 0.9);
}

TEST(LeastP, IsThatOfTheMostExtremeData) {
  EXPECT_DOUBLE_EQ(least_sign_flip_p(5), 2. / 32);
  EXPECT_DOUBLE_EQ(least_sign_flip_p(1), 1);
  EXPECT_DOUBLE_EQ(least_permutation_p(5, 5), 2. / 252);
  EXPECT_DOUBLE_EQ(least_permutation_p(3, 3), 2. / 20);
  EXPECT_DOUBLE_EQ(sign_flip_test(Values(6, 1.), two_sided).p, least_sign_flip_p(6));
  EXPECT_DOUBLE_EQ(permutation_test(Values(4, 1.), Values(5, 2.), two_sided).p,
                   least_permutation_p(4, 5));
}

TEST(SignFlipInterval, OfFiveValuesLiesWithinTheirRange) {
  const auto exact = sign_flip_interval(Values{3, 1, 4, 1.5, 9});
  ASSERT_TRUE(exact);
  EXPECT_GT(exact->interval.lo, -1);
  EXPECT_LT(exact->interval.lo, 1.5);
  EXPECT_GT(exact->interval.hi, 4);
  EXPECT_LE(exact->interval.hi, 9);
  EXPECT_DOUBLE_EQ(exact->confidence, 0.9375);
  EXPECT_FALSE(sign_flip_interval(Values{3, 1, 4, 1.5}));
  EXPECT_TRUE(sign_flip_interval(Values{3, 1, 4, 1.5}, 0.85));
}

TEST(SignFlipInterval, OfDarwinsMaizeIsThatOfBruteForce) {
  const auto exact = sign_flip_interval(kDarwin);  // by bisection over all assignments: numpy
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->interval.lo, 5.5, 1e-8);
  EXPECT_NEAR(exact->interval.hi, 43, 1e-8);
  EXPECT_NEAR(sign_flip_centre(kDarwin), 80. / 3, 1e-9);
  EXPECT_NEAR(exact->confidence, 1 - 2. * 819 / 32768, 1e-12);
}

TEST(SignFlipInterval, OfEqualValuesHasNoWidth) {
  const auto exact = sign_flip_interval(Values(6, 2.5));
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->interval.lo, 2.5);
  EXPECT_EQ(exact->interval.hi, 2.5);
}

TEST(PermutationInterval, AreDifferencesOfSubsetMeans) {
  const auto exact =
      permutation_interval(kTerm, kEarly);  // by listing all 3003 for every shift: numpy
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->interval.lo, -0.76, 1e-8);
  EXPECT_NEAR(exact->interval.hi, 0.12, 1e-8);
  EXPECT_NEAR(exact->confidence, 1 - 150. / 3003, 1e-12);
  EXPECT_FALSE(permutation_interval(Values{1, 2, 3}, Values{4, 5, 6}));
}

TEST(Centres, AreMeansWhereNoValueIsFarFromTheOthers) {
  EXPECT_NEAR(sign_flip_centre(Values{1, 2, 3, 4, 4.5}), 2.9, 1e-12);
  EXPECT_NEAR(permutation_centre(Values{1, 2, 3}, Values{5, 6, 7.5}), 18.5 / 3 - 2, 1e-12);
  EXPECT_EQ(sign_flip_centre(Values{2.5, 2.5}), 2.5);
  EXPECT_TRUE(std::isnan(sign_flip_centre(Values{})));
}

/// One launch ten times as slow: the estimate stays with the others and inside its interval, and
/// the sign is that of the test.
TEST(Centres, StayWithTheManyAndInsideTheirIntervals) {
  std::mt19937_64 random(19);
  for (int i = 0; i < 50; ++i) {
    Values a = noise(12, random), b = noise(12, random);
    for (double& value : b) value += 3;
    b[3] = -230;
    EXPECT_NEAR(sign_flip_centre(b), 2.7, 1.5);
    EXPECT_NEAR(permutation_centre(a, b), 2.5, 1.5);
    EXPECT_LT(sign_flip_test(b, greater).p, sign_flip_test(b, less).p);
    const auto pairs = sign_flip_interval(b);
    const auto samples = permutation_interval(a, b);
    EXPECT_LE(pairs->interval.lo, sign_flip_centre(b));
    EXPECT_GE(pairs->interval.hi, sign_flip_centre(b));
    EXPECT_LE(samples->interval.lo, permutation_centre(a, b));
    EXPECT_GE(samples->interval.hi, permutation_centre(a, b));
  }
}

/// An interval holds 0 exactly where the test at the same level does not refuse it.
TEST(Intervals, AgreeWithTheirTests) {
  std::mt19937_64 random(11);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    Values a = noise(8, random), b = noise(8, random);
    for (double& value : b) value += 1;
    const auto pairs = sign_flip_interval(b);
    const auto samples = permutation_interval(a, b);
    const auto holds_zero = [](const ExactInterval& e) {
      return e.interval.lo <= 1e-12 && e.interval.hi >= -1e-12;
    };
    EXPECT_EQ(holds_zero(*pairs), sign_flip_test(b, two_sided).p > 1 - pairs->confidence + 1e-12);
    EXPECT_EQ(holds_zero(*samples),
              permutation_test(a, b, two_sided).p > 1 - samples->confidence + 1e-12);
    refused += !holds_zero(*samples);
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 180);
}

TEST(Intervals, OfManyValuesAreCloseToStudents) {
  std::mt19937_64 random(13);
  const Values a = uniform(60, random), b = uniform(60, random);
  const auto exact = sign_flip_interval(a);
  const auto student = student_interval(a);
  EXPECT_NEAR(exact->interval.lo, student->lo, 0.04);
  EXPECT_NEAR(exact->interval.hi, student->hi, 0.04);
  const auto shift = permutation_interval(a, b);
  EXPECT_NEAR((shift->interval.lo + shift->interval.hi) / 2, mean(b) - mean(a), 0.05);
  EXPECT_NEAR(shift->interval.hi - shift->interval.lo, 2 * 1.98 * std::sqrt(2. / 60), 0.15);
}

/// Beyond kMostExactValues the assignments are drawn, and winsorised anew for every shift: the
/// interval of normal samples holds the truth as often as it says.
TEST(Intervals, OfDrawnAssignmentsCover) {
  std::mt19937_64 random(23);
  int pairs = 0, samples = 0;
  constexpr int kRepetitions = 120;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto one = sign_flip_interval(noise(36, random));
    const auto two = permutation_interval(noise(18, random), noise(18, random));
    pairs += one->interval.lo <= 0 && one->interval.hi >= 0;
    samples += two->interval.lo <= 0 && two->interval.hi >= 0;
  }
  EXPECT_GE(pairs, 107);  // of 114; three standard errors
  EXPECT_GE(samples, 107);
}

TEST(CombinedP, TakesTheLeastOfTheTests) {
  EXPECT_DOUBLE_EQ(combined_p(0.004, 0.02, 0.1, 1000), 0.009);
  EXPECT_DOUBLE_EQ(combined_p(0.008, 0.02, std::nullopt, 1000), 0.009);
  EXPECT_DOUBLE_EQ(combined_p(0.02, 0.008, 0.1, 1000), 0.009);
  EXPECT_DOUBLE_EQ(combined_p(0.02, 0.02, 0.008, 1000), 0.009);
  EXPECT_DOUBLE_EQ(combined_p(1e-9, 1, 1, 252), 1. / 252);
  EXPECT_DOUBLE_EQ(combined_p(1, 0.99, 1, 252), 1);
  EXPECT_DOUBLE_EQ(combined_pairs_p(0.02, 0.01, 8, 256), 0.012);
  EXPECT_DOUBLE_EQ(combined_pairs_p(1. / 128, 1e-9, 7, 128), 1. / 128);
  EXPECT_DOUBLE_EQ(combined_pairs_p(0.03, 0.06, 13, 8192), 0.04);
}

/// Launches of a spread of 0.5 %, of which one in ten is 30 % slower.
Values disturbed(std::size_t n, double slowdown, std::mt19937_64& random) {
  Values x = noise(n, random);
  for (double& value : x) {
    value = 0.005 * value + std::log1p(-slowdown);
    if (random() % 10 == 0) value += std::log(0.7);
  }
  return x;
}

struct Found {
  int ours = 0, mann_whitney = 0;
};

/// The same noise for every slowdown: how many of 300 comparisons of 8 launches find it at 1 %.
Found found(double slowdown) {
  std::mt19937_64 random(37);
  Found found;
  for (int i = 0; i < 300; ++i) {
    const Values base = disturbed(8, 0, random), fresh = disturbed(8, slowdown, random);
    found.ours += permutation_test(base, fresh, less).p <= 0.01;
    found.mann_whitney += RankSumTest(fresh, base).greater_p(0) <= 0.01;
  }
  return found;
}

/// Where both builds have outliers, ranks are hard to beat. The test is within 5 points of them,
/// and a larger slowdown is found no less often.
TEST(PermutationTest, FindsWhatRanksFindAndMoreOfMore) {
  int before = 0;
  for (const double slowdown : {0.01, 0.02, 0.03, 0.05, 0.08}) {
    const Found now = found(slowdown);
    EXPECT_GE(now.ours, now.mann_whitney - 15) << slowdown;
    EXPECT_GE(now.ours, before) << slowdown;
    before = now.ours;
  }
  EXPECT_GE(before, 210);
}

/// Half of the launches are 5 % slower in both builds: the mean tells what the ranks do not.
TEST(PermutationTest, FindsASlowdownAmongTwoModes) {
  std::mt19937_64 random(41);
  int ours = 0, ranks = 0;
  const auto two_modes = [&](double slowdown) {
    Values x = noise(10, random);
    for (double& value : x)
      value = 0.005 * value + std::log1p(-slowdown) - (random() % 2 == 0 ? 0.05 : 0);
    return x;
  };
  for (int i = 0; i < 300; ++i) {
    const Values base = two_modes(0), fresh = two_modes(0.03);
    ours += permutation_test(base, fresh, less).p <= 0.01;
    ranks += RankSumTest(fresh, base).greater_p(0) <= 0.01;
  }
  EXPECT_GE(ours, ranks);
  EXPECT_GE(ours, 120);
}

/// Noise of which one value in five lies far below the others.
Values with_outliers(std::size_t n, std::mt19937_64& random) {
  Values x = noise(n, random);
  for (double& value : x)
    if (random() % 5 == 0) value -= 40;
  return x;
}

/// The limits of winsorising do not depend on the assumed difference: a smaller one is never less
/// plausible than one that lies further away, whatever outliers there are.
TEST(PValues, AreMonotoneInTheShift) {
  std::mt19937_64 random(29);
  for (int i = 0; i < 20; ++i) {
    const std::size_t n = 6 + static_cast<std::size_t>(i % 10);
    const Values a = with_outliers(n, random), b = with_outliers(n, random);
    double pairs = 0, samples = 0;
    for (double shift = -50; shift <= 50; shift += 1.3) {
      const double two = permutation_test(a, minus(b, shift), greater).p;
      const double one = sign_flip_test(minus(b, shift), greater).p;
      EXPECT_GE(one, pairs - 1e-12) << n << " pairs at " << shift;
      EXPECT_GE(two, samples - 1e-12) << n << " values at " << shift;
      pairs = one;
      samples = two;
    }
  }
}

/// A quarter of the launches at half speed: they do not stretch the interval of the others.
TEST(Intervals, OfTheManyAreNotStretchedByTheFew) {
  std::mt19937_64 random(31);
  for (int i = 0; i < 10; ++i) {
    Values a = noise(20, random), b = noise(20, random);
    for (std::size_t k = 0; k < 5; ++k) b[4 * k] = -70;
    const auto samples = permutation_interval(a, b);
    EXPECT_GT(samples->interval.lo, -5);
    EXPECT_LT(samples->interval.hi, 3);
  }
}

TEST(FewPairs, TakeBothTests) {
  EXPECT_DOUBLE_EQ(few_pairs_p(0.04, 0.01, 8), 0.02);
  EXPECT_DOUBLE_EQ(few_pairs_p(1. / 128, 1e-9, 7), 1. / 128);
  EXPECT_EQ(student_p(Values(5, 1.)), 0);
  EXPECT_EQ(student_p(Values(5, 0.)), 1);
  EXPECT_NEAR(student_p(Values{1, 2, 3}), 0.037089950, 1e-8);  // t = 2 sqrt(3), 2 degrees
}

/// One pair of seven in which the base was disturbed does not hide a slowdown of many deviations.
TEST(FewPairs, ShowWhatOnePairSpeaksAgainst) {
  const Values ratios{-5.1, -4.9, -5.3, -4.8, -5, -5.2, 0.1};
  EXPECT_LE(sign_flip_test(ratios, less).p, 0.01);
}

/// Without a difference p <= u happens in at most a share that is little above u.
TEST(PValues, KeepTheirLevelsUnderTheNullHypothesis) {
  std::mt19937_64 random(17);
  constexpr int kRepetitions = 4000;
  int pairs[2] = {}, samples[2] = {}, unlike[2] = {};
  const double levels[2] = {0.01, 0.05}, most[2] = {0.015, 0.06};
  const auto skewed = [&](std::size_t n) {
    Values x = noise(n, random);
    for (double& value : x) value = std::exp(value);
    return x;
  };
  for (int i = 0; i < kRepetitions; ++i) {
    const Values a = skewed(7), b = skewed(8), many = skewed(20);
    const double two = permutation_test(a, b, greater).p;
    const double sizes = permutation_test(b, many, greater).p;
    const double one = sign_flip_test(noise(8, random), greater).p;
    for (int k = 0; k < 2; ++k) {
      pairs[k] += one <= levels[k];
      samples[k] += two <= levels[k];
      unlike[k] += sizes <= levels[k];
    }
  }
  for (int k = 0; k < 2; ++k) {
    const double limit = kRepetitions * most[k] + 3 * std::sqrt(most[k] * kRepetitions);
    for (const int count : {pairs[k], samples[k], unlike[k]}) {
      EXPECT_LE(count, limit) << levels[k];
      EXPECT_GE(count, kRepetitions * levels[k] / 5) << levels[k];
    }
  }
}

}  // namespace
}  // namespace scalemark::permutations_test
