// Ten thousand launches are compared in seconds: nothing is quadratic in their number.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "analysis/compare/compare_support.hpp"

namespace scalemark::many_records_test {
namespace {

/// Five launches at each of `points` points, with keys as many as records have.
ResultSet many(const std::string& label, int points) {
  ResultSet set = test::result_set(label, {});
  std::mt19937_64 random(1);
  for (int repeat = 0; repeat < 5; ++repeat)
    for (int point = 0; point < points; ++point) {
      MeasuredLaunch one =
          test::launch(100 + static_cast<double>(random() % 100) / 100, 1 << (point % 4));
      one.keys["seed"] = point / 4;
      for (int key = 0; key < 40; ++key) one.keys["key" + std::to_string(key)] = key;
      set.launches.push_back(std::move(one));
    }
  return set;
}

TEST(ManyRecords, TenThousandAreMatchedAndCompared) {
  const std::vector<ResultSet> sets{many("a", 1000), many("b", 1000)};
  const auto start = std::chrono::steady_clock::now();
  const Matching matching = match_sets(sets, {});
  const MetricComparison made = compare_sets(sets, matching, {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(matching.points.size(), 1000U);
  EXPECT_EQ(made.differences.size(), 1000U);
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 60);  // without optimisation, beside other tests; quadratic: many minutes
}

}  // namespace
}  // namespace scalemark::many_records_test
