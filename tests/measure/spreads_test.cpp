// Spreads by hand and by simulation, and Welch's test against numpy.
#include "measure/spreads.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "measure/permutation.hpp"

namespace scalemark::spreads_test {
namespace {

using Values = std::vector<double>;

Values noise(std::size_t n, double deviation, std::mt19937_64& random, double centre = 0) {
  Values x(n);
  for (double& value : x) value = centre + deviation * std::normal_distribution<double>()(random);
  return x;
}

TEST(Spreads, DoNotDependOnTheCentres) {
  const Values a{1, 2, 3, 4, 5, 6}, b{10, 40, 70, 100, 130, 160};
  const Spreads spreads = spreads_of(a, b);
  EXPECT_NEAR(spreads.ratio, 30, 1e-9);
  EXPECT_TRUE(spreads.differ());
  Values moved = b;
  for (double& value : moved) value -= 1000;
  EXPECT_DOUBLE_EQ(spreads_of(a, moved).p, spreads.p);
  EXPECT_DOUBLE_EQ(spreads_of(b, a).p, spreads.p);
  EXPECT_NEAR(spreads_of(a, a).ratio, 1, 1e-12);
  EXPECT_DOUBLE_EQ(spreads_of(a, a).p, 1);
}

TEST(Spreads, OfEqualValuesAreAlike) {
  EXPECT_DOUBLE_EQ(spreads_of(Values(6, 1.), Values(6, 2.)).p, 1);
  EXPECT_DOUBLE_EQ(spreads_of(Values(6, 1.), Values(6, 2.)).ratio, 1);
}

/// Permeability of membranes at term and earlier (Hollander and Wolfe 1973, table 4.1).
TEST(StudentTest, IsThatOfNumpyAndScipy) {
  const Values at_term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
      early{1.15, 0.88, 0.90, 0.74, 1.21};
  const auto winsorised = winsorised_welch_test(at_term, early);
  ASSERT_TRUE(winsorised);
  EXPECT_NEAR(winsorised->greater_p(0), 0.9689493281094608, 1e-9);
  EXPECT_NEAR(winsorised->least_shift(75. / 3003), -0.6938152915067706, 1e-9);
  EXPECT_FALSE(welch_test(at_term, early));  // ten values against five
  const Values few{1, 2, 4, 8, 5.5, 3};
  const auto plain = welch_test(few, Values{2, 9, 7, 4.5, 6, 8, 3});  // scipy
  ASSERT_TRUE(plain);
  EXPECT_NEAR(plain->greater_p(0), 0.12604787869796383, 1e-12);
  EXPECT_NEAR(plain->least_shift(0.025), -1.4214892234391319, 1e-9);
  const auto student = student_test(few);
  ASSERT_TRUE(student);
  EXPECT_NEAR(student->greater_p(1.5), 0.033507586496014256, 1e-12);
  EXPECT_NEAR(student->least_shift(0.025), 1.2531529778753452, 1e-9);
  EXPECT_FALSE(student_test(Values(6, 2.)));
  EXPECT_FALSE(welch_test(Values{1, 2, 3, 4}, Values{1, 2, 3, 4, 5}));
  EXPECT_FALSE(welch_test(Values(5, 1.), Values(5, 2.)));
}

TEST(Spreads, MayDifferWhereTheyOrTheSizesAreUnlike) {
  const Values a{1, 2, 3, 4, 5, 6}, b{2, 3, 4, 5, 6, 7}, wide{-20, 3, 4, 9, 30, 50};
  EXPECT_FALSE(may_differ(a, b));
  EXPECT_TRUE(may_differ(a, wide));
  EXPECT_TRUE(may_differ(a, Values{2, 3, 4, 5}));
}

/// Fifty quiet launches against five noisy ones, without a shift: of one-sided tests at 1 % no more
/// than 1.5 % refuse, at 5 % no more than 6 % (three standard errors of the simulation are added).
TEST(UnlikeSpreads, KeepTheLevel) {
  std::mt19937_64 random(3);
  constexpr int kRepetitions = 800;
  int one = 0, five = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const double p =
        permutation_test(noise(50, 0.5, random), noise(5, 3, random), Alternative::less).p;
    one += p <= 0.01;
    five += p <= 0.05;
  }
  EXPECT_LE(one, 0.015 * kRepetitions + 11);
  EXPECT_LE(five, 0.06 * kRepetitions + 21);
}

}  // namespace
}  // namespace scalemark::spreads_test
