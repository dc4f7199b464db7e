// The search for the largest rate, against servers whose limit is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "measure/server.hpp"

namespace scalemark::rate_search_test {
namespace {

RateTrial trial(double rate, bool confirms, bool holds) {
  RateTrial made{rate, confirms};
  made.holds = holds;
  return made;
}

/// Rates up to `limit` hold.
RateSearch search(double first, double limit) {
  return search_rate(first, first / 1024,
                     [&](double rate, bool confirms) -> std::optional<RateTrial> {
                       return trial(rate, confirms, rate <= limit);
                     });
}

TEST(SearchRate, FindsEveryLimitWithinTheToleranceAndConfirmsIt) {
  for (double limit = 1; limit < 20'000; limit *= 1.37) {
    const RateSearch found = search(100, limit);
    ASSERT_TRUE(found.found) << limit;
    EXPECT_LE(*found.found, limit);
    EXPECT_GE(*found.found * kRateTolerance, limit);
    EXPECT_EQ(found.limited_by, "latency bound");
    EXPECT_TRUE(found.trials.back().confirms);
    EXPECT_EQ(found.trials.back().arrival_rate, *found.found);
    EXPECT_EQ(std::ranges::count(found.trials, true, &RateTrial::confirms), 1);
    EXPECT_LT(found.trials.size(), 18u);
  }
}

TEST(SearchRate, WhatFailsWhenRepeatedIsNotFound) {
  int repeats = 0;
  const RateSearch found =
      search_rate(100, 1, [&](double rate, bool confirms) -> std::optional<RateTrial> {
        return trial(rate, confirms, rate <= 150 && !(confirms && ++repeats == 1));
      });
  ASSERT_TRUE(found.found);
  const auto failed = std::ranges::find(found.trials, true, &RateTrial::confirms);
  EXPECT_LT(*found.found, failed->arrival_rate);
  EXPECT_TRUE(found.trials.back().confirms);
  EXPECT_TRUE(found.trials.back().holds);
}

TEST(SearchRate, ARepeatThatAlwaysFailsEndsTheSearch) {
  const RateSearch found =
      search_rate(100, 1, [&](double rate, bool confirms) -> std::optional<RateTrial> {
        return trial(rate, confirms, !confirms && rate < 150);
      });
  EXPECT_FALSE(found.found);
  EXPECT_EQ(found.limited_by, "trials");
}

TEST(SearchRate, NoRateHolds) {
  const RateSearch found = search(100, 0);
  EXPECT_FALSE(found.found);
  EXPECT_EQ(found.limited_by, "no rate held it");
  EXPECT_EQ(found.trials.size(), 11u);  // 100 down to 100 / 1024
}

TEST(SearchRate, ASignalEndsIt) {
  const RateSearch found =
      search_rate(100, 1, [](double, bool) -> std::optional<RateTrial> { return std::nullopt; });
  EXPECT_EQ(found.limited_by, "signal");
  EXPECT_TRUE(found.trials.empty());
}

}  // namespace
}  // namespace scalemark::rate_search_test
