// What others used of a host, from the reports of its ranks.
#include "result/foreign_load.hpp"

#include <gtest/gtest.h>

#include "record/write.hpp"
#include "result/support.hpp"

namespace scalemark::foreign_load_test {
namespace {

/// Of a host that was busy for 30 CPU seconds in 10 s.
RankReport report(const std::string& host, double own) {
  RankReport report;
  report.host = host;
  report.cpus_of_host = 4;
  report.noise.busy_cpu_seconds = 30;
  report.noise.own_cpu_seconds = own;
  report.noise.seconds = 10;
  return report;
}

TEST(ForeignLoad, IsWhatAllRanksOfAHostLeave) {
  const auto loads = foreign_loads({report("n0", 10), report("n1", 29.6), report("n0", 7)});
  ASSERT_EQ(loads.size(), 2U);
  EXPECT_EQ(loads[0].host, "n0");
  EXPECT_DOUBLE_EQ(loads[0].cpus, 1.3);
  EXPECT_EQ(loads[0].words(), "other processes used 1.3 of 4 CPUs");
  EXPECT_TRUE(loads[0].notable());
  EXPECT_NEAR(loads[1].cpus, 0.04, 1e-9);
  EXPECT_FALSE(loads[1].notable());
}

TEST(ForeignLoad, IsNeverBelowNone) { EXPECT_EQ(foreign_loads({report("n0", 31)}).at(0).cpus, 0); }

TEST(ForeignLoad, WhoIsMeasuredBesideIsNoStranger) {
  RankReport one = report("n0", 10);
  one.noise.family_cpu_seconds = 25;
  EXPECT_DOUBLE_EQ(foreign_loads({one}).at(0).cpus, 0.5);
}

TEST(ForeignLoad, UnknownWhereTheKernelDoesNotTell) {
  RankReport blind = report("n0", 1);
  blind.noise.busy_cpu_seconds.reset();
  EXPECT_TRUE(foreign_loads({report("n0", 1), blind}).empty());
  EXPECT_FALSE(most_foreign({}));
}

TEST(ForeignLoad, TheMostIsThatOfOneHost) {
  const auto most = most_foreign(foreign_loads({report("n0", 29), report("n1", 2)}));
  ASSERT_TRUE(most);
  EXPECT_EQ(most->host, "n1");
  EXPECT_DOUBLE_EQ(most->cpus, 2.8);
}

}  // namespace
}  // namespace scalemark::foreign_load_test
