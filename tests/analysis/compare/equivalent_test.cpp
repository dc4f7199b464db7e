// --equivalent: "within 2 %" is a verdict of its own, and what it would take is told.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/compare_support.hpp"
#include "measure/significance.hpp"

namespace scalemark::equivalent_test {
namespace {
using test::rates;
using test::swept;

Difference only(const std::vector<ResultSet>& sets, double percent) {
  CompareQuestions questions;
  questions.test.equivalent_percent = percent;
  return compare_sets(sets, match_sets(sets, {}), questions).differences.at(0);
}

const std::vector<double> kQuiet{100, 100.1, 99.9, 100.2, 99.8, 100};
const std::vector<double> kNoisy{100, 104, 97, 102, 96, 101};

TEST(Equivalent, WithinTheMarginByBothTests) {
  const Difference d = only({rates("a", kQuiet), rates("b", kQuiet)}, 2);
  EXPECT_DOUBLE_EQ(*d.p_equivalent, 1. / 924);  // no division of 12 values is as extreme
  EXPECT_EQ(d.verdict, "equivalent within 2 %");
  EXPECT_FALSE(d.repeats_for_equivalence);
  EXPECT_EQ(only({rates("a", kQuiet), rates("b", kQuiet)}, 0.5).verdict, "equivalent within 0.5 %");
}

TEST(Equivalent, ASmallDifferenceThatIsSureIsWithinALargeMargin) {
  std::vector<double> faster = kQuiet;
  for (double& rate : faster) rate *= 1.01;
  const std::vector<ResultSet> sets{swept(rates("a", kQuiet)), swept(rates("b", faster))};
  EXPECT_EQ(only(sets, 2).verdict, "equivalent within 2 %");
  EXPECT_EQ(only(sets, 0.5).verdict, "faster");
  EXPECT_FALSE(only(sets, 0.5).repeats_for_equivalence);
}

TEST(Equivalent, NeitherNorTellsHowManyLaunchesWouldDo) {
  std::vector<double> shuffled(kNoisy.rbegin(), kNoisy.rend());
  const Difference d = only({rates("a", kNoisy), rates("b", shuffled)}, 2);
  EXPECT_GT(*d.p_equivalent, 0.05);
  EXPECT_EQ(d.verdict, record::kNoDifference);
  ASSERT_TRUE(d.repeats_for_equivalence);
  double squares = 0, mean = 0;
  for (const double rate : kNoisy) mean += std::log(rate) / 6;
  for (const double rate : kNoisy) squares += std::pow(std::log(rate) - mean, 2) / 5;
  EXPECT_EQ(*d.repeats_for_equivalence,
            *repeats_for_equivalence(std::sqrt(squares), false, {std::log(0.98), std::log(1.02)},
                                     0.05, 0.8));
  EXPECT_GT(*d.repeats_for_equivalence, 6U);
}

TEST(Equivalent, NobodyAsked) {
  const std::vector<ResultSet> sets{rates("a", kQuiet), rates("b", kQuiet)};
  const Difference d = compare_sets(sets, match_sets(sets, {}), {}).differences.at(0);
  EXPECT_FALSE(d.p_equivalent);
  EXPECT_EQ(d.p_equivalent.why(), "no --equivalent was asked for");
  EXPECT_EQ(d.verdict, record::kNoDifference);
}

}  // namespace
}  // namespace scalemark::equivalent_test
