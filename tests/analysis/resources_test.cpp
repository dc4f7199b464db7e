// Counting what the ranks of a run record ran on.
#include <gtest/gtest.h>

#include "analysis/scaling/scaling.hpp"

namespace scalemark::resources_test {
namespace {

Json rank(const std::string& host, const Json& cpus, const Json& gpu, const Json& uuid) {
  return {{"host", host}, {"cpus", cpus}, {"gpu", gpu}, {"gpu_uuid", uuid}};
}

/// Two hosts with two ranks each; on n0 the ranks share CPU 2 and 3.
Json run() {
  return {{"system", {{"threads", 16}, {"cores", 16}}},
          {"ranks",
           {rank("n0", "0-3", 0, "GPU-a"), rank("n0", "2-5,8", 1, "GPU-b"),
            rank("n1", "0-3", 0, "GPU-c"), rank("n1", "4", 0, "GPU-c")}}};
}

TEST(Resources, RanksAndHosts) {
  EXPECT_EQ(count_resources(run(), Resource::rank), 4);
  EXPECT_EQ(count_resources(run(), Resource::node), 2);
}

TEST(Resources, CoresAreCountedOnceAHost) {
  EXPECT_EQ(count_resources(run(), Resource::core), 7 + 5);
}

TEST(Resources, HardwareThreadsOfACoreAreOne) {
  Json record = run();
  record["system"]["threads"] = 32;
  EXPECT_EQ(count_resources(record, Resource::core), 4 + 3) << "halves are rounded up by host";
  record["system"]["cores"] = nullptr;
  EXPECT_EQ(count_resources(record, Resource::core), 7 + 5);
}

TEST(Resources, GpusAreCountedByUuid) {
  EXPECT_EQ(count_resources(run(), Resource::gpu), 3);
  Json record = run();
  for (Json& rank : record["ranks"]) rank["gpu_uuid"] = nullptr;
  EXPECT_EQ(count_resources(record, Resource::gpu), 3) << "by host and number";
}

TEST(Resources, AreUnknownWhereOneRankIsSilent) {
  Json record = run();
  record["ranks"][1]["cpus"] = nullptr;
  record["ranks"][2]["gpu"] = nullptr;
  EXPECT_EQ(count_resources(record, Resource::core), std::nullopt);
  EXPECT_EQ(count_resources(record, Resource::gpu), std::nullopt);
  EXPECT_EQ(count_resources(record, Resource::node), 2);
}

}  // namespace
}  // namespace scalemark::resources_test
