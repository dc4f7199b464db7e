// The table at the end of a sweep: its means are those of compare, and what is fastest is only said
// where that is shown.
#include "report/sweep_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/write.hpp"

namespace scalemark::sweep_table_test {
namespace {

using testing::HasSubstr;

SweepResult result(const std::string& title, const std::vector<Work>& works) {
  SweepResult made{title, {}, 0};
  for (const Work& work : works) {
    MeasuredLaunch& launch = made.launches.emplace_back();
    launch.unit = "images/sec";
    launch.repeats = {work};
    launch.sweep = "here";
    launch.repeat = static_cast<std::int64_t>(made.launches.size());
  }
  return made;
}

std::string table(const std::vector<SweepResult>& results, std::optional<std::size_t> standard) {
  return sweep_table(summary_of(results, standard));
}

TEST(SweepTable, IsThereAsJsonToo) {
  SweepResult failed = result("b", {});
  failed.failed = 2;
  const Json sweep = part_json(summary_of({result("a", {{100, 10}, {100, 40}}), failed}, 0));
  EXPECT_EQ(sweep["points"][0]["throughput"],
            (Json{{"mean", 4.}, {"smallest", 2.5}, {"largest", 10.}}));
  EXPECT_EQ(sweep["points"][0]["over_default"], 1);
  EXPECT_EQ(sweep["points"][0]["records"].size(), 2u);
  EXPECT_EQ(sweep["points"][1]["failed"], 2);
  EXPECT_TRUE(sweep["points"][1]["throughput"].is_null());
  EXPECT_TRUE(sweep["fastest"].is_null()) << "one point has launches";
}

TEST(SweepTable, MeansAreAllUnitsOverAllSeconds) {
  const std::string text = table({result("a", {{100, 10}, {100, 40}})}, std::nullopt);
  EXPECT_THAT(text, HasSubstr("    a         2       0  4.000     2.500   10.000  images/sec\n"));
  EXPECT_THAT(text, HasSubstr("mean: units of all launches / their seconds"));
  EXPECT_THAT(text, testing::Not(HasSubstr("fastest")));
}

TEST(SweepTable, TheFastestIsSaidWhereItIsShown) {
  std::vector<Work> slow(6, {100, 20}), fast(6, {100, 10});
  EXPECT_THAT(table({result("a", slow), result("b", fast)}, 0),
              HasSubstr("fastest: b, 2.000 x a (faster than every other point, p = 0.0312)\n"));
  slow.resize(3);
  fast.resize(3);
  EXPECT_THAT(table({result("a", slow), result("b", fast)}, 0),
              HasSubstr("fastest: not shown; repeat 6 times (largest mean: b, 2.000 x a)\n"));
  EXPECT_THAT(table({result("a", {}), result("b", fast)}, 0), testing::Not(HasSubstr("fastest")));
}

}  // namespace
}  // namespace scalemark::sweep_table_test
