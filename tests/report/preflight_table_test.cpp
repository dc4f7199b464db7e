// What a person reads: every rank, what went wrong and who it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/preflight/rules.hpp"
#include "report/tables.hpp"
#include "result/preflight_support.hpp"

namespace scalemark::preflight_table_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PreflightResult judged(const std::vector<PreflightRank>& ranks, bool pinning = false) {
  RecordContext context = test::preflight_context();
  context.config.config.pinning = pinning;
  PreflightFacts facts = test::preflight_facts(ranks.size());
  if (ranks[0].entry.gpu_health) facts.device = "cuda";
  PreflightResult record = make_preflight_record(context, facts, ranks);
  apply_preflight_rules(record, ranks, parse_preflight_rules(default_preflight_rules(), "default"));
  return record;
}

TEST(PreflightTable, NamesTheSlowRank) {
  auto ranks = test::preflight_ranks(2);
  ranks[1].entry.gemm->fp32.flops = 5e10;
  const std::string text = preflight_table(judged(ranks));
  EXPECT_THAT(text, HasSubstr("50.00"));
  EXPECT_THAT(text, HasSubstr("fail: gemm.fp32 flops: rank 1 on node0: 50 GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("verdict: fail ("));
  EXPECT_THAT(text, HasSubstr("skip: gpu"));
  EXPECT_THAT(text, HasSubstr("transport: vader"));
  EXPECT_THAT(text, HasSubstr("scratch write"));
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(PreflightTable, PinningShowsWhoSharesCores) {
  auto ranks = test::preflight_ranks(3);
  EXPECT_THAT(pinning_table(judged(ranks, true)), HasSubstr("as asked"));
  ranks[1].report.affinity.cpus = {1, 2};
  const std::string text = pinning_table(judged(ranks, true));
  EXPECT_THAT(text, HasSubstr("shares cores with rank 0"));
  EXPECT_THAT(text, HasSubstr("warn: binding overlaps: rank 1 on node0: may run on cores 1-2"));
  EXPECT_THAT(text, Not(HasSubstr("gemm")));
}

TEST(PreflightTable, PinningShowsWhoCrossesNumaNodes) {
  auto ranks = test::preflight_ranks(3);
  ranks[2].report.affinity.numa = {1, 2};
  EXPECT_THAT(pinning_table(judged(ranks, true)), Not(HasSubstr("crosses")));  // all of both
  ranks[2].report.affinity.partial_numa = {2};
  const std::string text = pinning_table(judged(ranks, true));
  EXPECT_THAT(text, HasSubstr("crosses NUMA 1, 2\n"));
  EXPECT_THAT(text, HasSubstr("warn: binding crosses_numa: rank 2 on node1: may run on cores 4-5"));
}

TEST(PreflightTable, ShowsGpusAndTheirLinks) {
  const std::string without = preflight_table(judged(test::preflight_ranks(2)));
  EXPECT_THAT(without, Not(HasSubstr("SM clock")));
  const std::string text = preflight_table(judged(test::gpu_ranks(2)));
  EXPECT_THAT(text, HasSubstr("1800/1980 MHz"));
  EXPECT_THAT(text, HasSubstr("nothing"));
  EXPECT_THAT(text, HasSubstr("30 GB/s"));  // to the GPU from the far node
  EXPECT_THAT(text, HasSubstr("GPUs of node0"));
  EXPECT_THAT(text, HasSubstr("300.0"));
  EXPECT_THAT(text, HasSubstr("20.0*"));
  EXPECT_THAT(text, HasSubstr("mlx5_0/1 100.0 Gbit/s"));
}

TEST(PreflightTable, PutsTheHostThatIsFurthestBehindFirst) {
  EXPECT_THAT(preflight_table(judged(test::preflight_ranks(2))), Not(HasSubstr("furthest behind")));
  auto ranks = test::preflight_ranks(6);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].report.host = fmt::format("node{}", i / 2);
    if (i % 2 == 0) ranks[i].host->host = ranks[i].report.host;
  }
  ranks[3].entry.memory_bandwidth->bytes_per_second = 9e9;  // of node1, which has another
  PreflightFacts facts = test::preflight_facts(6);
  facts.pairs = test::preflight_pairs(3);
  const std::string text =
      fleet_table(make_preflight_record(test::preflight_context(), facts, ranks));
  EXPECT_THAT(text, HasSubstr("250 MB/s (0.25)"));
  EXPECT_THAT(text, HasSubstr("9 GB/s (0.90)"));
  EXPECT_LT(text.find("node2"), text.find("node1"));
  EXPECT_LT(text.find("node1"), text.find("node0"));
}

TEST(ShownValue, HasUnitsAndPrefixes) {
  EXPECT_EQ(shown_value(4.52e9, "bytes/s"), "4.52 GB/s");
  EXPECT_EQ(shown_value(1.83e11, "FLOP/s"), "183 GFLOP/s");
  EXPECT_EQ(shown_value(1.02e-3, "s"), "1.02 ms");
  EXPECT_EQ(shown_value(2e-6, "s"), "2 us");
  EXPECT_EQ(shown_value(0.5, ""), "0.5");
  EXPECT_EQ(shown_value("performance", ""), "performance");
  EXPECT_EQ(shown_value(nullptr, "s"), "unknown");
}

}  // namespace
}  // namespace scalemark::preflight_table_test
