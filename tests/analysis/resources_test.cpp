// Counting what the ranks of a run record ran on.
#include <gtest/gtest.h>

#include "analysis/scaling/scaling.hpp"

namespace scalemark::resources_test {
namespace {

record::RunRank rank(const std::string& host, const std::string& cpus, std::int64_t gpu,
                     const std::string& uuid) {
  record::RunRank made;
  made.host = host;
  made.cpus = cpus;
  made.gpu = gpu;
  made.gpu_uuid = uuid;
  return made;
}

/// Two hosts with two ranks each; on n0 the ranks share CPU 2 and 3.
RunResult run() {
  RunResult made;
  made.system.threads = made.system.cores = 16;
  made.ranks = {rank("n0", "0-3", 0, "GPU-a"), rank("n0", "2-5,8", 1, "GPU-b"),
                rank("n1", "0-3", 0, "GPU-c"), rank("n1", "4", 0, "GPU-c")};
  return made;
}

TEST(Resources, RanksAndHosts) {
  EXPECT_EQ(count_resources(run(), Resource::rank), 4);
  EXPECT_EQ(count_resources(run(), Resource::node), 2);
}

TEST(Resources, CoresAreCountedOnceAHost) {
  EXPECT_EQ(count_resources(run(), Resource::core), 7 + 5);
}

TEST(Resources, HardwareThreadsOfACoreAreOne) {
  RunResult record = run();
  record.system.threads = 32;
  EXPECT_EQ(count_resources(record, Resource::core), 4 + 3) << "halves are rounded up by host";
  record.system.cores = Unknown{};
  EXPECT_EQ(count_resources(record, Resource::core), 7 + 5);
}

TEST(Resources, GpusAreCountedByUuid) {
  EXPECT_EQ(count_resources(run(), Resource::gpu), 3);
  RunResult record = run();
  for (record::RunRank& rank : record.ranks) rank.gpu_uuid = Unknown{};
  EXPECT_EQ(count_resources(record, Resource::gpu), 3) << "by host and number";
}

TEST(Resources, AreUnknownWhereOneRankIsSilent) {
  RunResult record = run();
  record.ranks[1].cpus = Unknown{};
  record.ranks[2].gpu = Unknown{};
  EXPECT_EQ(count_resources(record, Resource::core), std::nullopt);
  EXPECT_EQ(count_resources(record, Resource::gpu), std::nullopt);
  EXPECT_EQ(count_resources(record, Resource::node), 2);
}

}  // namespace
}  // namespace scalemark::resources_test
