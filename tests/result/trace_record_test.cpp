// trace and operators from hand-made totals, to the last digit.
#include "result/trace_record.hpp"

#include <gtest/gtest.h>

#include "result/support.hpp"

namespace scalemark::trace_record_test {
namespace {

using test::make_context;
using test::make_facts;
using test::make_report;

/// Two steps of 0.5 s, of which 0.25 s each in convolutions.
RankTrace traced(double slower = 1) {
  RankTrace trace;
  trace.steps = 2;
  trace.step_seconds = 1 * slower;
  trace.communication_seconds = 0.125 * slower;
  trace.operators = {{"aten::convolution", "convolution", 4, 0.5 * slower, 8e9},
                     {"aten::copy_", "other", 2, 0.0625 * slower, 0.},
                     {"aten::copy_", "optimizer", 2, 0.125 * slower, 0.},
                     {"aten::batch_norm", "normalisation", 2, 0.0625 * slower, 0.}};
  return trace;
}

RunResult run_of(int ranks) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < ranks; ++rank)
    reports.push_back(make_report(rank, {0.25, 0.25}, {0, 0}));
  RunFacts facts = make_facts(ranks);
  facts.gemm_flops = 32e9;
  return make_run(make_context(), facts, reports);
}

Json record_of(RunResult run, const TraceFacts& facts) {
  fill_trace(run, measured_step(run), facts);
  return measured_json(run);
}

TEST(TraceRecord, WithoutATraceBothAreNullWithAReason) {
  const Json record = measured_json(run_of(1));
  for (const char* key : {"trace", "operators"}) {
    EXPECT_TRUE(record[key].is_null());
    EXPECT_EQ(record["unavailable"][key], "--trace was not asked for");
  }
}

TEST(TraceRecord, CostIsRelativeToTheMeasuredStep) {
  RunResult run = run_of(2);
  TraceFacts facts{"t.json", {traced(), traced(2)}, 40, 3.5, 1e-6};
  facts.ranks[1].dropped_spans = 7;
  const Json throughput = part_json(*run.throughput);
  const Json record = record_of(run, facts);
  EXPECT_EQ(record["throughput"], throughput);
  EXPECT_EQ(record["trace"], Json({{"path", "t.json"},
                                   {"steps", 2},
                                   {"events", 40},
                                   {"dropped_events", 7},
                                   {"step_seconds", 0.75},  // (0.5 + 1) / 2
                                   {"slowdown", 2.},        // 0.75 / 0.25 - 1
                                   {"seconds", 3.5},
                                   {"clock_uncertainty_seconds", 1e-6}}));
  EXPECT_FALSE(record["unavailable"].contains("trace"));
  EXPECT_FALSE(record["unavailable"].contains("operators"));
}

TEST(TraceRecord, GroupsAreMeansOverRanksAndRatesOfAllOfThem) {
  const Json record = record_of(run_of(2), {"t.json", {traced(), traced()}, 40, 3.5, 0});
  const Json& operators = record["operators"];
  const Json& convolution = operators["groups"]["convolution"];
  EXPECT_EQ(convolution["seconds"], 0.25);
  EXPECT_EQ(convolution["share"], 0.5);
  EXPECT_EQ(convolution["flops"], 8e9);  // 4e9 a step of each rank
  EXPECT_EQ(convolution["achieved_flops"], 32e9);
  EXPECT_EQ(convolution["roofline_fraction"], 1.);
  EXPECT_EQ(operators["groups"]["communication"]["seconds"], 0.0625);
  EXPECT_EQ(operators["groups"]["optimizer"]["share"], 0.125);
  EXPECT_EQ(operators["groups"]["other"]["share"], 0.0625);
  EXPECT_EQ(operators["outside"]["share"], 0.125);  // 1 - 1/2 - 1/16 - 1/8 - 1/16 - 1/8
  EXPECT_TRUE(operators["groups"]["normalisation"]["achieved_flops"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("operators.groups.normalisation.achieved_flops"));
  // Nothing ran, and nothing is divided by it.
  EXPECT_EQ(operators["groups"]["matrix_product"]["flops"], 0.);
  EXPECT_TRUE(operators["groups"]["matrix_product"]["achieved_flops"].is_null());
}

TEST(TraceRecord, TheTopComesByItsOwnTimeApartByGroup) {
  const Json record = record_of(run_of(2), {"t.json", {traced(), traced()}, 40, 3.5, 0});
  const Json& top = record["operators"]["top"];
  ASSERT_EQ(top.size(), 4u);
  EXPECT_EQ(top[0], Json({{"name", "aten::convolution"},
                          {"group", "convolution"},
                          {"calls_per_step", 2.},
                          {"self_seconds", 0.25},
                          {"share", 0.5}}));
  EXPECT_EQ(top[1]["name"], "aten::copy_");
  EXPECT_EQ(top[1]["group"], "optimizer");
}

TEST(TraceRecord, NamesTwentyOperatorsAtMost) {
  RankTrace trace = traced();
  for (int i = 0; i < 30; ++i)
    trace.operators.push_back({"op" + std::to_string(i), "other", 1, 1e-3, 0.});
  const Json record = record_of(run_of(1), {"t.json", {trace}, 40, 3.5, 0});
  EXPECT_EQ(record["operators"]["top"].size(), 20u);
}

TEST(TraceRecord, OnAGpuTheHostsTimesAreNoTimesOfGroups) {
  RunResult run = run_of(1);
  run.device = std::string("cuda");
  const Json record = record_of(run, {"t.json", {traced()}, 40, 3.5, 0});
  const Json& convolution = record["operators"]["groups"]["convolution"];
  EXPECT_EQ(convolution["flops"], 4e9);
  for (const char* key : {"seconds", "share", "achieved_flops", "roofline_fraction"}) {
    EXPECT_TRUE(convolution[key].is_null()) << key;
    EXPECT_TRUE(record["unavailable"].contains(std::string("operators.groups.convolution.") + key));
  }
  EXPECT_TRUE(record["operators"]["outside"]["seconds"].is_null());
}

TEST(TraceRecord, FlopsThatNobodyKnowsMakeNoRate) {
  RankTrace trace = traced();
  trace.operators[0].flops.reset();
  const Json record = record_of(run_of(1), {"t.json", {trace}, 40, 3.5, 0});
  const Json& convolution = record["operators"]["groups"]["convolution"];
  EXPECT_EQ(convolution["seconds"], 0.25);
  EXPECT_TRUE(convolution["flops"].is_null());
  EXPECT_TRUE(convolution["roofline_fraction"].is_null());
}

TEST(TraceRecord, WithInt8NobodyKnowsThem) {
  RunResult run = run_of(1);
  run.precision = Precision::int8;
  const Json record = record_of(run, {"t.json", {traced()}, 40, 3.5, 0});
  for (const char* group : {"convolution", "matrix_product"})
    EXPECT_TRUE(record["operators"]["groups"][group]["flops"].is_null()) << group;
  EXPECT_EQ(record["operators"]["groups"]["convolution"]["seconds"], 0.25);
}

TEST(TraceRecord, WithoutStepsSaysSo) {
  const Json record = record_of(run_of(1), {"t.json", {RankTrace{}}, 0, 3.5, 0});
  EXPECT_TRUE(record["trace"].is_null());
  EXPECT_EQ(record["unavailable"]["trace"], "no step was traced");
}

}  // namespace
}  // namespace scalemark::trace_record_test
