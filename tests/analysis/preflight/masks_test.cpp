// Masks that srun would get, judged without ranks: who crosses NUMA nodes, and CPUs that are not
// there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "analysis/preflight/rules.hpp"
#include "config/value_syntax.hpp"
#include "error.hpp"

namespace scalemark::masks_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

/// On 4 NUMA nodes of 24 cores.
PreflightResult judged(const std::string& list) {
  setenv("HWLOC_SYNTHETIC", "NUMANode:4 Core:24 PU:1", 1);
  const Topology topology = load_topology();
  unsetenv("HWLOC_SYNTHETIC");
  LoadedConfig config;
  config.command = Command::preflight;
  config.config.pinning = true;
  return judged_masks({config, system_info(), {}}, topology.get(), parse_cpu_masks(list),
                      read_preflight_rules(std::nullopt));
}

/// A list of eight masks as it was published for nodes of four GPUs, the last one as given.
std::string published(const std::string& last) {
  const std::string cores = "0xffffff";
  const std::string third = cores + std::string(12, '0'), fourth = cores + std::string(18, '0');
  const std::string second = cores + "000000";
  return second + "," + second + "," + cores + "," + cores + "," + fourth + "," + fourth + "," +
         third + "," + last;
}

std::vector<std::int64_t> crossing(const PreflightResult& record) {
  std::vector<std::int64_t> ranks;
  for (const record::CheckedRank& rank : record.ranks)
    if (rank.binding.crosses_numa == true) ranks.push_back(rank.rank);
  return ranks;
}

TEST(Masks, AMissingZeroPutsTheLastRankOnTwoNodes) {
  const PreflightResult wrong = judged(published("0xffffff" + std::string(11, '0')));
  EXPECT_EQ(crossing(wrong), std::vector<std::int64_t>{7});
  EXPECT_EQ(*wrong.ranks[7].cpus, "44-67");
  EXPECT_EQ(*wrong.ranks[7].numa, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(wrong.verdict, CheckStatus::warn);
  EXPECT_THAT(wrong.warnings,
              Contains(HasSubstr("may run on cores 44-67, which cross NUMA nodes 1, 2")));
  const PreflightResult right = judged(published("0xffffff" + std::string(12, '0')));
  EXPECT_TRUE(crossing(right).empty());
  EXPECT_EQ(*right.ranks[7].numa, std::vector<std::int64_t>{2});
}

TEST(Masks, NobodyIsBoundOtherwiseThanAsked) {
  const PreflightResult record = judged("ffffff,ffffff000000");
  EXPECT_EQ(record.verdict, CheckStatus::pass);
  EXPECT_EQ(record.world_size, 2);
  for (const record::CheckedRank& rank : record.ranks) {
    EXPECT_THAT(rank.binding.as_asked.why(), HasSubstr("--cpu_masks"));
    EXPECT_EQ(rank.threads, 24);
    EXPECT_EQ(rank.cpus_of_host, 96);
  }
}

TEST(Masks, ACpuThatIsNotThereIsRefused) {
  try {
    judged("1,0x1" + std::string(24, '0'));
    FAIL() << "was not refused";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--cpu_masks: the mask of rank 1 has CPU 96"),
                                    HasSubstr("96 CPUs: 0-95")));
  }
}

}  // namespace
}  // namespace scalemark::masks_test
