// Rules of GPUs, links and settings against hand-made records: what is flagged and who is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/preflight/rules.hpp"
#include "result/preflight_support.hpp"

namespace scalemark::gpu_values_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PreflightResult judged(const std::vector<PreflightRank>& ranks, const char* device,
                       const std::string& rules = "") {
  PreflightFacts facts = test::preflight_facts(ranks.size());
  facts.device = device;
  PreflightResult record = make_preflight_record(test::preflight_context(), facts, ranks);
  const std::string text =
      rules.empty() ? std::string(default_preflight_rules()) : R"({"rules": [)" + rules + "]}";
  apply_preflight_rules(record, ranks, parse_preflight_rules(text, "rules"));
  return record;
}

/// "status: name statistic: message" of all that did not pass.
std::vector<std::string> complaints(const PreflightResult& record) {
  std::vector<std::string> found;
  for (const record::Check& check : record.checks)
    if (check.status != CheckStatus::pass)
      found.push_back(fmt::format("{}: {} {}: {}", to_string(check.status), check.name,
                                  check.statistic, check.message));
  return found;
}

/// Two ranks of which the second has this GPU.
template <typename Change>
std::vector<PreflightRank> with_gpu(Change make_worse) {
  auto ranks = test::gpu_ranks(2);
  GpuFindings findings = test::gpu_findings();
  make_worse(findings);
  ranks[1].entry.gpu_health = gpu_health(findings);
  return ranks;
}

TEST(GpuRules, PassOnHealthyOnes) {
  const PreflightResult record = judged(test::gpu_ranks(4), "cuda");
  EXPECT_EQ(record.verdict, CheckStatus::pass);
  EXPECT_THAT(complaints(record), ElementsAre());
}

TEST(GpuRules, WithoutGpusAreOneSkip) {
  EXPECT_THAT(complaints(judged(test::preflight_ranks(2), "cpu")),
              ElementsAre(HasSubstr("skip: gpu health: the ranks use no GPU")));
}

TEST(GpuRules, NameAGpuThatIsHeldDown) {
  const auto ranks = with_gpu([](GpuFindings& gpu) {
    gpu.health.load.sm_mhz = 1200;
    gpu.health.load.slowdowns = std::vector<std::string>{"hw_thermal"};
  });
  EXPECT_THAT(complaints(judged(ranks, "cuda")),
              ElementsAre(HasSubstr("fail: gpu.clock slowdowns: rank 1 on node0: slowdowns: "
                                    "[\"hw_thermal\"]"),
                          HasSubstr("warn: gpu.clock sm_mhz: rank 1 on node0: 1200 MHz")));
}

TEST(GpuRules, NameErrorsOfMemoryAndXids) {
  const auto ranks = with_gpu([](GpuFindings& gpu) {
    gpu.health.ecc_after = EccErrors{5, 1};
    gpu.health.xids = std::vector<int>{79};
    gpu.health.xids_log = std::vector<int>{48, 79};
    gpu.health.nvlinks_inactive = 2;
  });
  EXPECT_THAT(
      complaints(judged(ranks, "cuda")),
      ElementsAre(HasSubstr("fail: gpu.ecc uncorrected: rank 1"),
                  HasSubstr("warn: gpu.ecc corrected_new: rank 1 on node0: 2, at most 0"),
                  HasSubstr("fail: gpu.xid events: rank 1 on node0: events: [79]"),
                  HasSubstr("warn: gpu.xid kernel_log"), HasSubstr("warn: gpu.nvlink inactive")));
}

TEST(GpuRules, CompareCopiesFromTheNearNodeAlone) {
  const auto slower = with_gpu([](GpuFindings& gpu) { gpu.copies[0].to_device = 2.5e10; });
  EXPECT_THAT(complaints(judged(slower, "cuda")),
              ElementsAre(HasSubstr("fail: gpu.copies.near to_device_bytes_per_second: rank 1 on "
                                    "node0: 25 GB/s, 0.50 of the better rank")));
  // A GPU of the other socket: what is near to one is far from the other.
  const auto other = with_gpu([](GpuFindings& gpu) {
    gpu.numa = 1;
    std::swap(gpu.copies[0].to_device, gpu.copies[1].to_device);
    std::swap(gpu.copies[0].from_device, gpu.copies[1].from_device);
  });
  EXPECT_THAT(complaints(judged(other, "cuda")), ElementsAre());
}

TEST(GpuRules, WhatNvmlDoesNotTellIsSkipped) {
  const auto ranks = [] {
    auto unknown = test::gpu_ranks(1);
    unknown[0].entry.gpu_health = gpu_health({});
    return unknown;
  }();
  for (const std::string& text : complaints(judged(ranks, "cuda")))
    EXPECT_THAT(text, ::testing::StartsWith("skip: "));
}

TEST(GpuRules, ArePairsAndCopiesOfABaselineToo) {
  const PreflightResult record = judged(test::gpu_ranks(2), "cuda");
  const Json made = make_preflight_rules(preflight_values(record), 0.5, "made");
  const auto limit = [&](const std::string& check, const std::string& statistic) -> Json {
    for (const Json& rule : made["rules"])
      if (rule["check"] == check && rule["statistic"] == statistic && rule.contains("min"))
        return rule["min"];
    return nullptr;
  };
  EXPECT_EQ(limit("gpu.peers.0-1", "bytes_per_second"), 1.5e11);
  EXPECT_EQ(limit("gpu.copies.near", "from_device_bytes_per_second"), 2e10);
  EXPECT_EQ(limit("gpu.copies.far", "from_device_bytes_per_second"), 1e10);
  EXPECT_THAT(complaints(judged(test::gpu_ranks(2), "cuda",
                                R"({"check": "gpu.peers.1-0", "statistic": "can_access",
                                    "equals": true, "level": "fail"})")),
              ElementsAre(HasSubstr("fail: gpu.peers.1-0 can_access: node0: false, to be true")));
}

TEST(LinkRules, NameTheCountersThatRose) {
  auto ranks = test::preflight_ranks(2);
  ranks[0].host->risen_counters = {
      {"mlx5_0/1.symbol_error", 3}, {"mlx5_0/1.link_downed", 1}, {"eth0.rx_dropped", 2}};
  ranks[0].report.noise.error_counters["eth0"] = 2;
  const PreflightResult record = judged(ranks, "cpu");
  EXPECT_EQ(record.hosts[0].error_counters, (ErrorCounters{{"eth0", 2}, {"mlx5_0/1", 4}}));
  EXPECT_THAT(complaints(record),
              ElementsAre(HasSubstr("warn: nic.eth0 errors: node0: rx_dropped +2"),
                          HasSubstr("warn: nic.mlx5_0/1 errors: node0: link_downed +1, "
                                    "symbol_error +3"),
                          HasSubstr("skip: gpu")));
}

TEST(LinkRules, OfStateAndRate) {
  auto ranks = test::preflight_ranks(2);
  const std::string rules =
      R"({"check": "fabric.*", "statistic": "state", "equals": "ACTIVE", "level": "fail"},
         {"check": "fabric.*", "statistic": "gigabits_per_second", "min": 200, "level": "warn"})";
  EXPECT_THAT(complaints(judged(ranks, "cpu", rules)),
              ElementsAre(HasSubstr("warn: fabric.mlx5_0/1 gigabits_per_second: node0: 100 Gbit/s, "
                                    "at least 200 Gbit/s"),
                          HasSubstr("skip: gpu")));
}

TEST(SettingRules, NameRanksAndValuesThatDiffer) {
  auto ranks = test::preflight_ranks(4);
  ranks[2].settings["NCCL_ALGO"] = "Tree";
  ranks[3].settings.erase("NCCL_ALGO");
  const PreflightResult record = judged(ranks, "cpu");
  EXPECT_EQ(record.verdict, CheckStatus::warn);
  EXPECT_THAT(complaints(record),
              ElementsAre(HasSubstr("warn: settings differing: NCCL_ALGO is \"Ring\" on ranks "
                                    "0-1, \"Tree\" on rank 2, not set on rank 3"),
                          HasSubstr("skip: gpu")));
}

TEST(SettingRules, CompareAVariable) {
  const std::string rules =
      R"({"check": "settings", "statistic": "NCCL_ALGO", "equals": "Ring", "level": "fail"},
         {"check": "settings", "statistic": "hcoll_enabled", "equals": true, "level": "warn"},
         {"check": "settings", "statistic": "UCX_TLS", "equals": "rc", "level": "warn"})";
  auto ranks = test::preflight_ranks(2);
  EXPECT_THAT(complaints(judged(ranks, "cpu", rules)),
              ElementsAre(HasSubstr("skip: settings UCX_TLS: nothing"), HasSubstr("skip: gpu")));
  ranks[1].settings["NCCL_ALGO"] = "Tree";
  EXPECT_THAT(complaints(judged(ranks, "cpu", rules)),
              ElementsAre(HasSubstr("fail: settings NCCL_ALGO: \"Tree\" on rank 1"),
                          HasSubstr("skip: settings UCX_TLS"), HasSubstr("skip: gpu")));
}

}  // namespace
}  // namespace scalemark::gpu_values_test
