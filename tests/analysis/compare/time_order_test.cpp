// Sets that were measured one after the other, and sets that drift, are named.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/compare_support.hpp"
#include "measure/clock.hpp"

namespace scalemark::time_order_test {
namespace {
using test::rates;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Launch k starts `step` k + `first` minutes after midnight.
ResultSet timed(ResultSet set, int first, int step) {
  for (std::size_t k = 0; k < set.launches.size(); ++k) {
    const int minute = first + step * static_cast<int>(k);
    set.launches[k].started_at =
        fmt::format("2026-01-01T{:02}:{:02}:00.000Z", minute / 60, minute % 60);
  }
  return set;
}

std::vector<std::string> warnings_of(const std::vector<ResultSet>& sets) {
  return time_warnings(sets, match_sets(sets, {}), "throughput", 0.05);
}

const std::vector<double> kLevel{100, 102, 99, 101, 98, 103, 100.5};

TEST(TimeOrder, OneSetWhollyBeforeTheOther) {
  const ResultSet a = timed(rates("a", kLevel), 0, 2);
  EXPECT_THAT(warnings_of({a, timed(rates("b", kLevel), 100, 2)}),
              ElementsAre(AllOf(HasSubstr("all launches of a "), HasSubstr("00:12:00"),
                                HasSubstr("before those of b"), HasSubstr("01:40:00"))));
  EXPECT_THAT(warnings_of({timed(rates("b", kLevel), 100, 2), a}),
              ElementsAre(HasSubstr("all launches of a ")));
  EXPECT_THAT(warnings_of({a, timed(rates("b", kLevel), 1, 2)}), IsEmpty());
  EXPECT_THAT(warnings_of({a, timed(rates("b", kLevel), 12, 2)}), IsEmpty());  // they touch
}

TEST(TimeOrder, ASingleStartHasNoOrder) {
  EXPECT_THAT(warnings_of({timed(rates("a", {1}), 0, 1), timed(rates("b", {1}), 9, 1)}), IsEmpty());
  EXPECT_THAT(warnings_of({rates("a", kLevel), rates("b", kLevel)}), IsEmpty());
}

TEST(TimeOrder, ATrendIsToldInPercentOfItsSpan) {
  std::vector<double> falling;
  for (int k = 0; k < 7; ++k) falling.push_back(100 * std::exp(-0.01 * k));
  EXPECT_THAT(warnings_of({timed(rates("a", kLevel), 0, 2), timed(rates("b", falling), 1, 2)}),
              ElementsAre(AllOf(HasSubstr("throughput of b has a trend of -5.8 %"),
                                HasSubstr("p = 0.0004"))));  // 2 of 5040 orders
}

TEST(TimeOrder, UnlikePointsAreOneSeries) {
  // Each point rises by itself; one is ten times as fast, and they lie in turns.
  ResultSet set = rates("b", {});
  for (int k = 0; k < 8; ++k)
    set.launches.push_back(test::launch((k % 2 ? 1000 : 100) * (1 + 0.01 * k), k % 2 ? 2 : 1));
  ResultSet level = rates("a", {});
  for (int k = 0; k < 8; ++k)
    level.launches.push_back(
        test::launch((k % 2 ? 1000 : 100) * (1 + 0.01 * (k / 2 % 2)), k % 2 ? 2 : 1));
  EXPECT_THAT(warnings_of({timed(level, 0, 2), timed(set, 1, 2)}),
              ElementsAre(HasSubstr("throughput of b has a trend of +")));
}

std::vector<double> slower(std::vector<double> rates_of_base, double by) {
  for (double& rate : rates_of_base) rate *= 1 - by;
  return rates_of_base;
}

MetricComparison compared(const std::vector<ResultSet>& sets, bool paired = false) {
  CompareQuestions questions;
  questions.paired = paired;
  return compare_sets(sets, match_sets(sets, {}), questions);
}

/// One launch of b after each of a.
TEST(TimeOrder, ABuildThatAlwaysComesSecondIsConfounded) {
  const std::vector<ResultSet> sets{timed(rates("a", kLevel), 0, 4),
                                    timed(rates("b", slower(kLevel, 0.1)), 2, 4)};
  for (const bool paired : {true, false}) {
    const MetricComparison made = compared(sets, paired);
    EXPECT_EQ(made.differences.at(0).verdict, record::kConfounded) << paired;
    EXPECT_THAT(made.warnings,
                testing::Contains(AllOf(HasSubstr("a came first in 7 of 7 pairs"),
                                        HasSubstr("let either build come first in half"))));
  }
  // What shows no difference is no difference in whatever order.
  const MetricComparison same =
      compared({timed(rates("a", kLevel), 0, 4), timed(rates("b", kLevel), 2, 4)});
  EXPECT_EQ(same.differences.at(0).verdict, record::kNoDifference);
}

/// b comes first of each second pair, and is the slower one all the same.
TEST(TimeOrder, ABalancedOrderIsNotConfounded) {
  std::vector<ResultSet> sets{timed(rates("a", kLevel), 0, 4),
                              timed(rates("b", slower(kLevel, 0.1)), 2, 4)};
  for (std::size_t k = 0; k < kLevel.size(); k += 2)
    std::swap(sets[0].launches[k].started_at, sets[1].launches[k].started_at);
  for (const bool paired : {true, false})
    EXPECT_EQ(compared(sets, paired).differences.at(0).verdict, "slower") << paired;
}

/// The rate falls by 1 % a launch, a before b.
TEST(TimeOrder, ATrendThatMakesTheDifferenceIsConfounded) {
  std::vector<double> early, late;
  for (int k = 0; k < 8; ++k) {
    early.push_back(100 * std::exp(-0.01 * k + 0.001 * (k * k % 5)));
    late.push_back(100 * std::exp(-0.01 * (k + 8) + 0.001 * (k * k % 5)));
  }
  const MetricComparison made =
      compared({timed(rates("a", early), 0, 2), timed(rates("b", late), 16, 2)});
  EXPECT_EQ(made.differences.at(0).verdict, record::kConfounded);
  EXPECT_THAT(made.warnings,
              testing::Contains(AllOf(HasSubstr("b at 1 rank: the trend within a and b"),
                                      HasSubstr("measure both side by side"))));
  // The difference is many times what the trend makes.
  const MetricComparison large =
      compared({timed(rates("a", early), 0, 2), timed(rates("b", slower(late, 0.4)), 16, 2)});
  EXPECT_EQ(large.differences.at(0).verdict, "slower");
}

TEST(TimeOrder, ReadsTimesOfRecords) {
  EXPECT_EQ(utc_seconds("1970-01-02T00:00:01.5Z"), 86401.5);
  EXPECT_EQ(utc_seconds("2026-01-31T12:00:00.000Z") - utc_seconds("2025-01-31T12:00:00Z"),
            365 * 86400.);
  EXPECT_TRUE(std::isnan(utc_seconds("")));
}

}  // namespace
}  // namespace scalemark::time_order_test
