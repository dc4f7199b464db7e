// What ranks of preflight tell rank 0, and what the record says of it and of checks that did not
// come to an end.
#include "result/preflight_record.hpp"

#include <gtest/gtest.h>

#include "record/wire.hpp"
#include "result/preflight_support.hpp"

namespace scalemark::preflight_record_test {
namespace {

TEST(PreflightRecord, WhatARankFoundTravelsWhole) {
  for (PreflightRank& rank : test::gpu_ranks(2)) {
    rank.entry.gpu_health->numa = {};
    const std::string text = to_wire(rank);
    EXPECT_EQ(to_wire(from_wire<PreflightRank>(text)), text);
  }
  for (const PreflightRank& rank : test::pinned_ranks(2)) {
    const auto back = from_wire<PreflightRank>(to_wire(rank));
    EXPECT_FALSE(back.entry.gemm);
    EXPECT_EQ(back.host.has_value(), rank.host.has_value());
  }
}

TEST(PreflightRecord, EveryNullHasTheReasonOfItsPlace) {
  auto ranks = test::preflight_ranks(2);
  ranks[0].report.noise.throttled_seconds.reset();
  PreflightFacts facts = test::preflight_facts(2);
  facts.collectives->algorithm = {};
  const Json reasons =
      record_json(make_preflight_record(test::preflight_context(), facts, ranks))["unavailable"];
  EXPECT_EQ(reasons["ranks.gpu_health"], "the ranks use no GPU");
  EXPECT_EQ(reasons["hosts.gpu_peers"], "the ranks use no GPU");
  EXPECT_EQ(reasons["ranks.noise.throttled"],
            "the host does not tell, or --pinning measures nothing");
  EXPECT_EQ(reasons["collectives.algorithm"], "the communicator does not tell");
  EXPECT_EQ(reasons["pairs"], "all ranks are on one host, or --pinning measures nothing");
  EXPECT_FALSE(reasons.contains("collectives"));
}

TEST(PreflightRecord, ChecksThatDidNotEndLeaveTheRestUnknown) {
  const Json record =
      make_failed_preflight_record(test::preflight_context(), 2, {Status::timeout, "rank 1 hangs"});
  EXPECT_EQ(record["status"], "timeout");
  EXPECT_EQ(record["ranks"], Json::array());
  for (const char* key : {"verdict", "collectives", "pairs", "settings", "wall_seconds"}) {
    EXPECT_EQ(record[key], nullptr) << key;
    EXPECT_EQ(record["unavailable"][key], "the checks did not come to an end: rank 1 hangs");
  }
}

}  // namespace
}  // namespace scalemark::preflight_record_test
