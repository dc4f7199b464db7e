// Kendall's S and its p against every order counted, Sen's slope by hand.
#include "measure/trend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace scalemark::trend_test {
namespace {

using Values = std::vector<double>;

Values places(std::size_t n) {
  Values times(n);
  std::iota(times.begin(), times.end(), 0.);
  return times;
}

TrendTest of(const Values& values) { return find_trend(places(values.size()), values); }

double score(const Values& values) {
  double s = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j)
      s += values[j] > values[i] ? 1 : values[j] < values[i] ? -1 : 0;
  return s;
}

/// The share of all orders whose |S| is at least that of `values`.
double counted_p(const Values& values) {
  Values order = places(values.size());
  double all = 0, as_large = 0;
  do {
    ++all;
    if (std::abs(score(order)) >= std::abs(score(values))) ++as_large;
  } while (std::ranges::next_permutation(order).found);
  return as_large / all;
}

TEST(Trend, PCountsEveryOrder) {
  for (const Values& values :
       {Values{1, 2, 3}, Values{2, 1, 3, 4}, Values{3, 1, 2, 5, 4}, Values{1, 2, 3, 4, 5, 6, 7},
        Values{7, 6, 2, 5, 4, 3, 1, 0}, Values{0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6}}) {
    const TrendTest trend = of(values);
    EXPECT_TRUE(trend.exact);
    EXPECT_EQ(trend.s, score(values));
    EXPECT_NEAR(trend.p, counted_p(values), 1e-12) << values.size();
  }
  EXPECT_NEAR(of({1, 2, 3, 4, 5}).p, 2. / 120, 1e-15);
}

TEST(Trend, OfAlikeValuesTheVarianceIsThatOfTheTies) {
  // S = 15 pairs - 2; var = (6 5 17 - 2 (2 1 9)) / 18 = 474 / 18 = 26.33
  const TrendTest trend = of({1, 1, 2, 2, 3, 4});
  EXPECT_EQ(trend.s, 13);
  EXPECT_FALSE(trend.exact);
  EXPECT_NEAR(trend.p, std::erfc(13 / std::sqrt(474. / 18) / std::sqrt(2.)), 1e-12);
  EXPECT_EQ(of({5, 5, 5, 5}).p, 1);
  EXPECT_EQ(of({5, 5, 5, 5}).change, 0);
}

TEST(Trend, TheApproximationMeetsTheExactOne) {
  const auto weak = [](std::size_t n) {
    Values values = places(n);
    std::mt19937_64 random(3);
    for (double& x : values) x = 0.003 * x + static_cast<double>(random() % 1'000'003) / 1e6;
    return values;
  };
  const TrendTest exact = of(weak(kMostExactTrend)), normal = of(weak(kMostExactTrend + 1));
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(normal.exact);
  EXPECT_EQ(normal.s, score(weak(kMostExactTrend + 1)));
  const double n = kMostExactTrend, variance = n * (n - 1) * (2 * n + 5) / 18;
  EXPECT_GT(exact.p, 0.01);
  EXPECT_NEAR(exact.p / std::erfc(exact.s / std::sqrt(2 * variance)), 1, 0.1);
}

TEST(Trend, TheChangeIsTheMedianSlopeTimesTheSpan) {
  // Slopes of pairs: 2 / 1, 3 / 3, 1 / 2: their median 1 over a span of 3.
  EXPECT_DOUBLE_EQ(find_trend(Values{0, 1, 3}, Values{0, 2, 3}).change, 3);
  EXPECT_DOUBLE_EQ(of({0, 1, 2, 100, 4, 5}).change, 5);               // one far off moves nothing
  EXPECT_EQ(find_trend(Values{1, 1, 1}, Values{1, 2, 3}).change, 0);  // no time went by
}

TEST(Trend, OfManyValues) {
  Values many = places(20'000);
  std::mt19937_64 random(1);
  for (double& x : many) x = -0.001 * x + static_cast<double>(random() % 1000) / 100;
  const TrendTest trend = of(many);
  EXPECT_NEAR(trend.change, -20, 1);
  EXPECT_LT(trend.p, 1e-9);
}

TEST(Trend, FewValuesHaveNone) {
  EXPECT_EQ(of({}).p, 1);
  EXPECT_EQ(of({1, 2}).p, 1);
}

}  // namespace
}  // namespace scalemark::trend_test
