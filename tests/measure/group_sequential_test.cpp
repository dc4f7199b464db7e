// The sequential sign-flip test by hand, and its level by counting every assignment of signs.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "measure/joint_permutation.hpp"
#include "measure/statistics.hpp"

namespace scalemark::group_sequential_test {
namespace {

using Values = std::vector<double>;
using Looks = std::vector<SequentialLook>;

/// Share of all assignments of signs whose limited sum is at most the observed one.
double counted_p(const Values& x) {
  const Values kept = winsorised_magnitudes(x);
  int count = 0;
  for (unsigned turned = 0; turned < 1U << x.size(); ++turned) {
    double gain = 0;
    for (std::size_t i = 0; i < x.size(); ++i) gain += turned >> i & 1U ? -2 * kept[i] : 0;
    count += gain <= 1e-12;
  }
  return count / std::exp2(static_cast<double>(x.size()));
}

TEST(FirstRefusal, OfOneLookIsTheSignFlipTest) {
  std::mt19937_64 random(3);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    Values x(8);
    for (double& value : x) value = std::normal_distribution<double>(-0.6)(random);
    const bool sequential = first_refusal({x}, {{8, 0.05}}).has_value();
    EXPECT_EQ(sequential, counted_p(x) <= 0.05);
    refused += sequential;
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 250);
}

TEST(FirstRefusal, OfTwoLooksByHand) {
  // After 1 2 one of the 4 assignments may be refused: -1 -2. With 4 these are two of 8; a third
  // may go then: of the other sums, 7 5 3 -1 -3 -5, the smallest, 1 - 2 - 4.
  const Looks looks{{2, 0.25}, {3, 0.375}};
  EXPECT_EQ(first_refusal({{-1, -2, 4}}, looks), 0U);
  EXPECT_EQ(first_refusal({{1, -2, -4}}, looks), 1U);
  EXPECT_FALSE(first_refusal({{-1, 2, -4}}, looks));
  EXPECT_FALSE(first_refusal({{-1, 2}}, looks));
  EXPECT_FALSE(first_refusal({{-1}}, looks));
}

/// All assignments of signs to given magnitudes: the share that is refused by each look is at most
/// what may be spent until then, and close to it.
TEST(FirstRefusal, KeepsItsLevelForEveryMagnitude) {
  const Looks looks{{7, 0.0079}, {10, 0.0095}, {13, 0.0125}};
  std::mt19937_64 random(5);
  for (const bool heavy : {false, true}) {
    Values magnitudes(13);
    for (double& value : magnitudes) {
      value = std::abs(std::normal_distribution<double>()(random));
      if (heavy) value = std::exp(3 * value);
    }
    std::vector<int> refused(looks.size());
    for (unsigned signs = 0; signs < 1U << 13; ++signs) {
      Values x = magnitudes;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (signs >> i & 1U) x[i] = -x[i];
      const auto look = first_refusal({x}, looks);
      if (look) ++refused[*look];
    }
    double spent = 0;
    for (std::size_t look = 0; look < looks.size(); ++look) {
      spent += refused[look] / 8192.;
      EXPECT_LE(spent, looks[look].spent);
      EXPECT_GT(spent, looks[look].spent - 1.01 / (1 << looks[look].pairs));
    }
  }
}

TEST(FirstRefusal, LeavesTiesOut) {
  // Equal magnitudes: with 10 of them 11 of 1024 assignments have at most one plus sign.
  Values x(10, -1.);
  x[9] = 1;
  EXPECT_FALSE(first_refusal({x}, {{10, 10. / 1024}}));
  EXPECT_TRUE(first_refusal({x}, {{10, 11. / 1024}}));
  EXPECT_FALSE(first_refusal({Values(10, 0.)}, {{10, 0.5}}));
}

TEST(FirstRefusal, RefusesLooksThatDoNotAscend) {
  const Values x(5, -1.);
  EXPECT_THROW(first_refusal({x}, {{5, 0.1}, {5, 0.2}}), std::invalid_argument);
  EXPECT_THROW(first_refusal({x}, {{3, 0.2}, {5, 0.1}}), std::invalid_argument);
  EXPECT_THROW(first_refusal({x}, {{23, 0.1}}), std::invalid_argument);
  EXPECT_THROW(first_refusal({x, Values(4, -1.)}, {{4, 0.1}}), std::invalid_argument);
}

/// Unlike magnitudes in each series, so that no two assignments are equal.
Series magnitudes(std::size_t points, std::size_t pairs, std::mt19937_64& random) {
  Series series(points, Values(pairs));
  for (auto& one : series)
    for (double& value : one) value = std::abs(std::normal_distribution<double>()(random));
  return series;
}

Series with_signs(Series series, unsigned turned) {
  for (auto& one : series)
    for (std::size_t i = 0; i < one.size(); ++i)
      if (turned >> i & 1U) one[i] = -one[i];
  return series;
}

/// Over all assignments to the same magnitudes of three series: at most what may be spent.
TEST(FirstRefusal, OfSeveralSeriesKeepsTheOneLevel) {
  std::mt19937_64 random(7);
  const Series series = magnitudes(3, 9, random);
  const Looks looks{{6, 0.05}, {9, 0.1}};
  int refused[2] = {};
  for (unsigned turned = 0; turned < 1U << 9; ++turned)
    if (const auto look = first_refusal(with_signs(series, turned), looks)) ++refused[*look];
  EXPECT_LE(refused[0] / 512., 0.05);
  EXPECT_GE(refused[0], 8);  // of 64 assignments 3 may go
  EXPECT_LE((refused[0] + refused[1]) / 512., 0.1);
  EXPECT_GE(refused[0] + refused[1], 45);
}

TEST(FirstRefusal, FindsASeriesThatTheMeanHides) {
  std::mt19937_64 random(9);
  Series series(4, Values(10));
  for (auto& one : series)
    for (double& value : one) value = 0.03 + 0.01 * std::normal_distribution<double>()(random);
  for (double& value : series[2]) value -= 0.12;
  EXPECT_FALSE(first_refusal({mean_of_series(series)}, {{10, 0.01}}));
  EXPECT_TRUE(first_refusal(series, {{10, 0.01}}));
}

TEST(FirstRefusal, OneBurstDoesNotHideALoss) {
  std::mt19937_64 random(11);
  Values x(14);
  for (double& value : x) value = -0.03 + 0.007 * std::normal_distribution<double>()(random);
  x[4] = 0.36;  // the base's launch met a neighbour's burst
  EXPECT_TRUE(first_refusal({x}, {{14, 0.01}}));
}

}  // namespace
}  // namespace scalemark::group_sequential_test
