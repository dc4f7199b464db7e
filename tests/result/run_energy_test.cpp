// Energy in a run record, against values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "result/run_metrics.hpp"
#include "result/support.hpp"

namespace scalemark::run_energy_test {
namespace {

using test::make_facts;
using test::make_report;
using testing::HasSubstr;

/// Two hosts of two ranks each, two steps of 64 samples; the first rank of a host counts it.
std::vector<RankReport> two_hosts() {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 4; ++rank) {
    reports.push_back(make_report(rank, {1, 1}, {0, 0}));
    reports.back().energy_of_host = rank % 2 == 0;
    if (rank % 2 == 0) reports.back().energy.host_joules = 320 * (rank + 1);
  }
  return reports;
}

Json record_of(const std::vector<RankReport>& reports, const std::string& device = "cpu") {
  RunFacts facts = make_facts(4);
  facts.device = device;
  LoadedConfig config;
  config.config.num_warmup_batches = 3;  // with two measured steps: 320 samples
  return test::make_run_record(test::make_context(config), facts, reports);
}

TEST(EnergyPart, SumsHostsAndDividesBySamples) {
  const Json energy = record_of(two_hosts())["energy"];
  EXPECT_DOUBLE_EQ(energy["joules_per_sample"], (320. + 960.) / 320);
  EXPECT_EQ(energy["source"], "rapl");
}

TEST(EnergyPart, OneHostWithoutCountersLeavesItUnknown) {
  auto reports = two_hosts();
  reports[2].energy = {std::nullopt, std::nullopt, "no RAPL here", ""};
  const Json record = record_of(reports);
  EXPECT_TRUE(record["energy"]["joules_per_sample"].is_null());
  EXPECT_TRUE(record["energy"]["source"].is_null());
  EXPECT_THAT(record["unavailable"]["energy.joules_per_sample"].get<std::string>(),
              HasSubstr("node1: no RAPL here"));
}

TEST(EnergyPart, GpusCountWithAndWithoutTheirHosts) {
  auto reports = two_hosts();
  for (RankReport& report : reports) {
    report.gpu_uuid = "GPU-" + std::to_string(report.rank);
    report.energy.gpu_joules = 640;
  }
  EXPECT_DOUBLE_EQ(record_of(reports, "cuda")["energy"]["joules_per_sample"],
                   (1280. + 2560.) / 320);
  EXPECT_EQ(record_of(reports, "cuda")["energy"]["source"], "nvml+rapl");
  reports[0].energy.host_joules.reset();
  EXPECT_DOUBLE_EQ(record_of(reports, "cuda")["energy"]["joules_per_sample"], 2560. / 320);
  EXPECT_EQ(record_of(reports, "cuda")["energy"]["source"], "nvml");
  reports[3].energy.gpu_joules.reset();
  reports[3].energy.gpu_reason = "MIG-3 is a slice";
  reports[0].energy.reason = "no RAPL here";
  const Json record = record_of(reports, "cuda");
  EXPECT_TRUE(record["energy"]["joules_per_sample"].is_null());
  EXPECT_EQ(record["unavailable"]["energy.joules_per_sample"], "node1: MIG-3 is a slice");
}

}  // namespace
}  // namespace scalemark::run_energy_test
