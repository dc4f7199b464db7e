// Statistics against small values computed by hand (or with R where stated).
#include "measure/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace scalemark::statistics_test {
namespace {

using Values = std::vector<double>;

TEST(Mean, IsTheSumOverTheCount) {
  EXPECT_DOUBLE_EQ(mean(Values{1, 2, 6}), 3);
  EXPECT_TRUE(std::isnan(mean(Values{})));
}

TEST(StandardDeviation, DividesByOneLess) {
  EXPECT_DOUBLE_EQ(standard_deviation(Values{2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
  EXPECT_EQ(standard_deviation(Values{5}), 0);
}

TEST(Quantile, InterpolatesAsType7) {
  const Values x{4, 1, 3, 2};  // unsorted on purpose
  EXPECT_DOUBLE_EQ(quantile(x, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(x, 0.25), 1.75);  // place 0.75 between 1 and 2
  EXPECT_DOUBLE_EQ(quantile(x, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(x, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(quantile(x, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(Values{7}, 0.99), 7);
  EXPECT_TRUE(std::isnan(quantile(Values{}, 0.5)));
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(median(Values{9, 1, 5}), 5);
  EXPECT_EQ(median(Values{9, 1, 5, 7}), 6);
}

TEST(MedianAbsoluteDeviation, IgnoresAnOutlier) {
  // median 3; deviations 2 1 0 1 97; their median 1
  EXPECT_DOUBLE_EQ(median_absolute_deviation_scaled(Values{1, 2, 3, 4, 100}), 1.4826);
}

TEST(StudentInterval, MatchesTheTable) {
  // mean 2, sd 1, n 3: t(0.975, 2) = 4.302652730
  const auto interval = student_interval(Values{1, 2, 3});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->lo, 2 - 4.302652730 / std::sqrt(3.0), 1e-8);
  EXPECT_NEAR(interval->hi, 2 + 4.302652730 / std::sqrt(3.0), 1e-8);
  // t(0.95, 2) = 2.919985580
  EXPECT_NEAR(student_interval(Values{1, 2, 3}, 0.90)->hi, 2 + 2.919985580 / std::sqrt(3.0), 1e-8);
}

TEST(StudentInterval, NeedsTwoValues) {
  EXPECT_FALSE(student_interval(Values{1}));
  EXPECT_FALSE(student_interval(Values{}));
}

TEST(EffectiveSampleSize, OfPairedValuesIsHalf) {
  // Every value twice: correlation 1/2 at lag 1, none beyond, so n / 2 samples.
  std::mt19937_64 random(3);
  Values x;
  for (int i = 0; i < 5000; ++i) {
    const double value = std::normal_distribution<double>(1, 0.1)(random);
    x.push_back(value);
    x.push_back(value);
  }
  EXPECT_NEAR(effective_sample_size(x), 5000, 400);
}

TEST(EffectiveSampleSize, IsAtMostTheNumberOfValues) {
  Values alternating;
  for (int i = 0; i < 100; ++i) alternating.push_back(i % 2 ? 1.0 : 2.0);
  EXPECT_DOUBLE_EQ(effective_sample_size(alternating), 100);
  EXPECT_EQ(effective_sample_size(Values{}), 0);
  EXPECT_EQ(effective_sample_size(Values{1}), 1);
}

TEST(EffectiveSampleSize, OfATrendIsSmall) {
  Values trend;
  for (int i = 0; i < 1000; ++i) trend.push_back(i);
  EXPECT_LT(effective_sample_size(trend), 5);
}

TEST(MeanInterval, OfAConstantSeriesHasNoWidth) {
  const auto interval = mean_interval(Values(100, 0.1));
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->lo, 0.1, 1e-15);
  EXPECT_NEAR(interval->hi, 0.1, 1e-15);
}

TEST(MeanInterval, IsRefusedBelowThirtyEffectiveSamples) {
  EXPECT_FALSE(mean_interval(Values(29, 0.1)));
  EXPECT_TRUE(mean_interval(Values(30, 0.1)));
  Values trend;
  for (int i = 0; i < 1000; ++i) trend.push_back(1 + 0.001 * i);
  EXPECT_FALSE(mean_interval(trend));
}

TEST(MeanInterval, OfAnAlternatingSeriesIsThatOfIndependentSamples) {
  Values x;
  for (int i = 0; i < 100; ++i) x.push_back(i % 2 ? 1.0 : 2.0);
  const auto interval = mean_interval(x), independent = student_interval(x);
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->lo, independent->lo);
  EXPECT_DOUBLE_EQ(interval->hi, independent->hi);
}

TEST(MeanInterval, OfSlowBlocksHasTheStatedWidth) {
  // +1 for 4 steps, -1 for 4 steps, 25 times: n = 200. Sums of products over n - k pairs, by
  // counting: g0 = 200, g1 = 150 - 49 + 0 = 101 (3 of 4 neighbours alike, 49 changes), g2 = 100 -
  // 98 = 2, g3 = 50 - 147 = -97. g0 + g1 = 301 > 0, g2 + g3 < 0: one pair, sum = -200 + 2 x 301 =
  // 402, 3 weights, n - 3 = 197.
  Values x;
  for (int i = 0; i < 200; ++i) x.push_back(i / 4 % 2 ? -1 : 1);
  const double long_run_variance = 402.0 / 197;
  EXPECT_NEAR(effective_sample_size(x), 200 * (200.0 / 199) / long_run_variance, 1e-9);
  const double half = student_quantile(0.95, 200.0 / 3 - 1) * std::sqrt(long_run_variance / 200);
  const auto interval = mean_interval(x);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->lo, -half, 1e-12);
  EXPECT_NEAR(interval->hi, half, 1e-12);
}

TEST(MeanInterval, ScalesWithTheValuesAndWidensWithConfidence) {
  std::mt19937_64 random(5);
  Values x, scaled;
  for (int i = 0; i < 500; ++i) x.push_back(std::normal_distribution<double>(1, 0.1)(random));
  for (const double value : x) scaled.push_back(1000 * value);
  const auto a = mean_interval(x), b = mean_interval(scaled), wide = mean_interval(x, 0.99);
  ASSERT_TRUE(a && b && wide);
  EXPECT_NEAR(b->lo, 1000 * a->lo, 1e-9);
  EXPECT_NEAR(b->hi, 1000 * a->hi, 1e-9);
  EXPECT_LT(wide->lo, a->lo);
  EXPECT_GT(wide->hi, a->hi);
}

}  // namespace
}  // namespace scalemark::statistics_test
