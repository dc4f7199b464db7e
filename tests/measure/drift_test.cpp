// A drift is found where there is one, its interval holds it, and noise whose neighbours are alike
// is rarely called one.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "measure/trend.hpp"

namespace scalemark::drift_test {
namespace {

using Values = std::vector<double>;

/// Around 100, standard deviation 1, neighbours correlated by `rho`.
Values noise(std::size_t n, double rho, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Values values;
  double now = normal(random);
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(100 + now);
    now = rho * now + std::sqrt(1 - rho * rho) * normal(random);
  }
  return values;
}

/// Share of 1,000 series with `added(i, n)` in which `says` holds.
template <typename Added, typename Says>
double share(std::size_t n, double rho, Added added, Says says) {
  std::mt19937_64 random(7);
  int count = 0;
  for (int repetition = 0; repetition < 1000; ++repetition) {
    Values values = noise(n, rho, random);
    for (std::size_t i = 0; i < n; ++i) values[i] += added(i, n);
    if (says(find_drift(values).value())) ++count;
  }
  return count / 1000.;
}

const auto nothing = [](std::size_t, std::size_t) { return 0.; };
const auto slope = [](std::size_t i, std::size_t n) {
  return -6. * static_cast<double>(i) / static_cast<double>(n);
};
const auto step = [](std::size_t i, std::size_t n) { return 2 * i < n ? 0. : -6.; };
const auto shown = [](const RunDrift& drift) { return drift.p <= 0.01; };

TEST(Drift, NoiseIsRarelyOne) {
  EXPECT_LE(share(60, 0, nothing, shown), 0.015);
  EXPECT_LE(share(60, 0.3, nothing, shown), 0.025);
  EXPECT_LE(share(60, 0.6, nothing, shown), 0.04);
  EXPECT_LE(share(12, 0.3, nothing, shown), 0.02);
}

TEST(Drift, ASlopeAndAStepAreFound) {
  EXPECT_GE(share(60, 0.2, slope, shown), 0.95);
  EXPECT_GE(share(60, 0.2, step, shown), 0.95);
}

TEST(Drift, TheIntervalHoldsTheChange) {
  const auto held = [](const RunDrift& drift) {
    const double change = -6. / 97;  // of a step, to the mean
    return drift.ci95.lo <= change && change <= drift.ci95.hi;
  };
  EXPECT_GE(share(60, 0, step, held), 0.93);
  EXPECT_GE(share(60, 0.3, step, held), 0.90);
}

TEST(Drift, ChangeIsThatOfTheThirds) {
  Values values;
  for (int i = 0; i < 12; ++i) values.push_back(i < 4 ? 90 : i < 8 ? 100 : 110);
  EXPECT_DOUBLE_EQ(find_drift(values)->change, 0.2);
}

TEST(Drift, OfTheSameValuesThereIsNone) {
  const RunDrift drift = *find_drift(Values(20, 5.));
  EXPECT_EQ(drift.change, 0);
  EXPECT_EQ(drift.p, 1);
  EXPECT_EQ(drift.ci95.lo, 0);
  EXPECT_EQ(drift.ci95.hi, 0);
}

TEST(Drift, TooFewOrNothingHaveNone) {
  EXPECT_FALSE(find_drift(Values(kLeastDrift - 1, 5.)));
  EXPECT_FALSE(find_drift(Values(20, 0.)));
}

}  // namespace
}  // namespace scalemark::drift_test
