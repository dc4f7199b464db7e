// The promises of docs/gate.md on histories, with fewer rows: without a change at most 1 % of them
// have one, whatever sets differ by beside their launches; changes that are plain are found.
#include "lab/simulation/history_simulation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/simulation/clopper_pearson.hpp"

namespace scalemark::history_rows::history_simulation_test {
namespace {

constexpr int kRows = 1000;

ChangeTest& shared_test() {
  static ChangeTest test;
  return test;
}

Row normal_row(std::size_t sets, double deviation, double between) {
  return {sets, normal_launches(deviation), deviation, between};
}

TEST(HistorySimulation, FalseAlarmsKeepTheirLevel) {
  for (const std::size_t sets : {10, 20, 40})
    for (const double between : {0., 1., 3.}) {
      const double share =
          share_of(normal_row(sets, 0.01, between), kRows, 7 + sets, shared_test(), says_anything);
      EXPECT_LE(clopper_pearson(std::lround(share * kRows), kRows, 0.999).lo, kAlpha)
          << sets << " sets, " << between << " x";
    }
}

TEST(HistorySimulation, AHalvedRateInTenSetsIsFound) {
  for (const double between : {0., 1., 3.}) {
    Row row = normal_row(10, 0.001, between);
    row.level = changed(5, 10, std::log(0.5));
    EXPECT_GE(share_of(row, 200, 11, shared_test(),
                       [](const RowFindings& found) { return says_step(found, 5, 10); }),
              0.95)
        << between;
  }
}

TEST(HistorySimulation, ADipOfTwoSetsIsFound) {
  for (const double between : {0., 1., 3.}) {
    Row row = normal_row(10, 0.001, between);
    row.level = changed(4, 6, std::log(0.9));
    EXPECT_GE(share_of(row, 200, 13, shared_test(),
                       [](const RowFindings& found) { return says_dip(found, 4, 6); }),
              0.95)
        << between;
  }
}

TEST(HistorySimulation, TheNewestSetIsSeldomBlamedWithoutAChange) {
  constexpr int kJudged = 400;
  for (const int points : {1, 3})
    for (const double step : {0., std::log(0.95)}) {
      Row row = normal_row(20, 0.02, 1);
      row.level = changed(10, 20, step);
      const double share = judge_newest(row, points, 0, kJudged, 19, shared_test()).regressed;
      EXPECT_LE(clopper_pearson(std::lround(share * kJudged), kJudged, 0.999).lo, kAlpha)
          << points << " points, step " << step;
    }
}

TEST(HistorySimulation, ANewestSetOfTenPercentLessIsFound) {
  const Row row = normal_row(25, 0.02, 0);
  const NewestShares slow = judge_newest(row, 1, std::log(0.9), 200, 23, shared_test());
  EXPECT_GE(slow.regressed, 0.96);
  EXPECT_EQ(slow.passed, 0);
  EXPECT_LT(judge_newest(row, 1, 0.0005, 200, 23, shared_test()).regressed, 0.05);
}

TEST(HistorySimulation, TheSimulationCanFail) {
  // A tenth of a set's noise is found by nobody.
  Row row = normal_row(10, 0.01, 0);
  row.level = changed(5, 10, 0.0005);
  EXPECT_LT(share_of(row, 200, 17, shared_test(), says_anything), 0.1);
}

}  // namespace
}  // namespace scalemark::history_rows::history_simulation_test
