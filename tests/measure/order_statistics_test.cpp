// Expectations of the largest of n normal values, against closed forms and tables.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "measure/statistics.hpp"

namespace scalemark::order_statistics_test {
namespace {

TEST(OrderStatistics, OfTwoAndThreeHaveClosedForms) {
  EXPECT_EQ(expected_maximum_of_normals(1), 0);
  EXPECT_NEAR(expected_maximum_of_normals(2), std::numbers::inv_sqrtpi, 1e-10);
  EXPECT_NEAR(expected_maximum_of_normals(3), 1.5 * std::numbers::inv_sqrtpi, 1e-10);
}

TEST(OrderStatistics, OfTabulatedNumbers) {
  // Harter (1961), "Expected values of normal order statistics".
  EXPECT_NEAR(expected_maximum_of_normals(10), 1.53875, 5e-6);
  EXPECT_NEAR(expected_maximum_of_normals(100), 2.50759, 5e-6);
}

TEST(OrderStatistics, GrowWithTheNumberButEverMoreSlowly) {
  double before = 0, growth = 2;
  for (double n = 10; n <= 1e9; n *= 10) {
    const double value = expected_maximum_of_normals(n);
    EXPECT_GT(value, before);
    EXPECT_LT(value - before, growth);
    growth = value - before;
    before = value;
    EXPECT_LT(value, std::sqrt(2 * std::log(n)));  // the limit it approaches from below
  }
}

TEST(OrderStatistics, OfNoValueIsRefused) {
  EXPECT_THROW(expected_maximum_of_normals(0.5), std::domain_error);
}

}  // namespace
}  // namespace scalemark::order_statistics_test
