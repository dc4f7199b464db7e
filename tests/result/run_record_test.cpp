// The run record: exact values of hand-made reports, and what is null in which status.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "config/names.hpp"
#include "error.hpp"
#include "result/run_metrics.hpp"
#include "result/support.hpp"

namespace scalemark::run_record_test {
namespace {
using test::make_facts;
using test::make_report;
using testing::HasSubstr;

Json record_of(const RunFacts& facts, const std::vector<RankReport>& reports) {
  return test::make_run_record({{}, system_info(), {{"OMP_NUM_THREADS", "2"}}}, facts, reports);
}

/// Two ranks: rank 0 steps of 1 s with 0.25 s wait, rank 1 of 2 s without.
std::vector<RankReport> two_reports() {
  std::vector<RankReport> reports{make_report(0, {1, 1, 1, 1}, {0.25, 0.25, 0.25, 0.25}),
                                  make_report(1, {2, 2, 2, 2}, {0, 0, 0, 0})};
  for (RankReport& report : reports) {
    report.samples.wall_seconds = 8;
    report.samples.communication_seconds = 2;
    report.samples.loss = {4, 3, 2, 1};
  }
  return reports;
}

TEST(RunRecord, ThroughputAndSteps) {
  const Json record = record_of(make_facts(2), two_reports());
  EXPECT_EQ(record["status"], "ok");
  EXPECT_EQ(record["throughput"]["mean"], 16.0);  // 32 images a step, 4 steps in 8 s
  EXPECT_EQ(record["throughput"]["median"], 16.0);
  EXPECT_EQ(record["throughput"]["jitter"], 0.0);
  EXPECT_EQ(record["throughput"]["per_rank_min"], 8.0);   // 16 images in 2 s
  EXPECT_EQ(record["throughput"]["per_rank_max"], 16.0);  // 16 images in 1 s
  EXPECT_TRUE(record["throughput"]["ci95"].is_null());
  EXPECT_THAT(record["unavailable"]["throughput.ci95"].get<std::string>(),
              HasSubstr("30 effective"));
  EXPECT_EQ(record["throughput"]["ci95_scope"], "this launch only");
  EXPECT_EQ(record["step_seconds"]["mean"], 2.0);
  EXPECT_EQ(record["step_seconds"]["p99"], 2.0);
  EXPECT_EQ(record["step_seconds"]["samples"], (std::vector{2.0, 2.0, 2.0, 2.0}));
  EXPECT_EQ(record["steps"], 4);
  EXPECT_EQ(record["stop_reason"], "num_batches");
  EXPECT_EQ(record["wall_seconds"], 8.0);
  EXPECT_TRUE(record["partial_throughput"].is_null());
}

TEST(RunRecord, JitterAndIntervalOfManySteps) {
  std::vector<double> steps;
  for (int i = 0; i < 200; ++i) steps.push_back((i * 7919) % 3 == 0 ? 0.5 : 1.0);
  const Json record =
      record_of(make_facts(1), {make_report(0, steps, std::vector<double>(200, 0.0))});
  const double mean_throughput = record["throughput"]["mean"];
  ASSERT_FALSE(record["throughput"]["ci95"].is_null());
  EXPECT_LT(record["throughput"]["ci95"][0].get<double>(), mean_throughput);
  EXPECT_GT(record["throughput"]["ci95"][1].get<double>(), mean_throughput);
  EXPECT_EQ(record["throughput"]["median"], 16.0);
  EXPECT_EQ(record["throughput"]["jitter"], 0.0);  // more than half of the steps are alike
}

TEST(RunRecord, SequencesOfUnequalLength) {
  std::vector<RankReport> reports = two_reports();
  reports[0].samples.units = {10, 20, 30, 20};
  reports[1].samples.units = {20, 20, 10, 30};
  for (RankReport& report : reports) report.samples.padded_units = 100;
  RunConfig config;
  config.model = "transformer_tiny";
  config.length_distribution = LengthDistribution::uniform;
  LoadedConfig loaded;
  loaded.config = config;
  const Json record = test::make_run_record(test::make_context(loaded), make_facts(2), reports);
  EXPECT_EQ(record["units_per_step"], 40.0);
  EXPECT_EQ(record["throughput"]["mean"], 20.0);  // 160 tokens in 8 s
  EXPECT_EQ(record["ranks"][0]["units_per_step"], 20.0);
  const Json& lengths = record["lengths"];
  EXPECT_EQ(lengths["distribution"], "uniform");
  EXPECT_TRUE(lengths["median"].is_null());
  EXPECT_EQ(lengths["longest"], 16.0);
  EXPECT_EQ(lengths["mean"], 160. / 4 / 32);  // 16 sequences a rank
  EXPECT_DOUBLE_EQ(lengths["padding_fraction"].get<double>(), 0.2);
  EXPECT_EQ(lengths["imbalance"], 100. / 80);  // 20 + 20 + 30 + 30 against means of 15, 20, 20, 25
  EXPECT_TRUE(record_of(make_facts(2), two_reports())["lengths"].is_null());
}

TEST(RunRecord, CommunicationByWaiting) {
  const Json communication = record_of(make_facts(2), two_reports())["communication"];
  EXPECT_EQ(communication["total_seconds"], 0.5);
  EXPECT_EQ(communication["exposed_seconds"], 0.125);  // mean of 0.25 and 0
  EXPECT_EQ(communication["exposed_method"], "wait");
  EXPECT_EQ(communication["overlap_fraction"], 0.75);
  EXPECT_TRUE(communication["baseline_throughput"].is_null());
  EXPECT_EQ(communication["bytes_per_step"], 4000);
  EXPECT_EQ(communication["bucket_mb"], default_bucket_mb(false));
  // One host: 800 bytes / (10 warm-up + 4 measured steps) / 2 ranks.
  EXPECT_DOUBLE_EQ(communication["nic_bytes_per_step"].get<double>(), 800. / 14 / 2);
}

TEST(RunRecord, CommunicationAgainstABaseline) {
  RunFacts facts = make_facts(2);
  facts.baseline_step_seconds = 1.8;
  facts.baseline_throughput = 17.5;
  Json record = record_of(facts, two_reports());
  EXPECT_NEAR(record["communication"]["exposed_seconds"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(record["communication"]["exposed_method"], "baseline");
  EXPECT_NEAR(record["communication"]["overlap_fraction"].get<double>(), 0.6, 1e-12);
  EXPECT_EQ(record["communication"]["baseline_throughput"], 17.5);
  facts.baseline_step_seconds =
      0.5;  // exposed more than the whole communication: nothing overlapped
  EXPECT_EQ(record_of(facts, two_reports())["communication"]["overlap_fraction"], 0.0);
  facts.baseline_step_seconds = 3;  // faster with communication than without, by noise
  record = record_of(facts, two_reports());
  EXPECT_EQ(record["communication"]["exposed_seconds"], -1.0);
  EXPECT_EQ(record["communication"]["overlap_fraction"], 1.0);
}

TEST(RunRecord, ACommunicationTimeThatIsNotReportedIsNull) {
  std::vector<RankReport> reports = two_reports();
  for (RankReport& report : reports) report.samples.communication_seconds = 0;
  const Json record = record_of(make_facts(2), reports);
  for (const char* key : {"total_seconds", "overlap_fraction"}) {
    EXPECT_TRUE(record["communication"][key].is_null()) << key;
    EXPECT_THAT(record["unavailable"][std::string("communication.") + key].get<std::string>(),
                HasSubstr("does not report"));
  }
  EXPECT_EQ(record["communication"]["exposed_seconds"], 0.125);  // the mean wait
}

TEST(RunRecord, OneRankHasNoCommunication) {
  const Json record = record_of(make_facts(1), {make_report(0, {1, 1}, {0, 0})});
  for (const char* key :
       {"total_seconds", "exposed_seconds", "exposed_method", "overlap_fraction"}) {
    EXPECT_TRUE(record["communication"][key].is_null()) << key;
    EXPECT_TRUE(record["unavailable"].contains(std::string("communication.") + key)) << key;
  }
}

TEST(RunRecord, NicBytesAddHostsAndCountEachOnce) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 4; ++rank)
    reports.push_back(make_report(rank, {1, 1}, {0, 0}));  // 2 hosts
  EXPECT_DOUBLE_EQ(
      record_of(make_facts(4), reports)["communication"]["nic_bytes_per_step"].get<double>(),
      400. / 12);
  for (std::size_t i = 0; i < reports.size(); ++i)
    reports[i].noise.link_bytes = {{"eth0", 800}, {"mlx5_0/1", i < 2 ? 7000U : 0U}};
  const Json links = record_of(make_facts(4), reports)["communication"]["links"];
  ASSERT_EQ(links.size(), 3u);  // what sent nothing is left out
  EXPECT_EQ(links[1]["host"], "node0");
  EXPECT_EQ(links[1]["link"], "mlx5_0/1");
  EXPECT_DOUBLE_EQ(
      links[1]["bytes_per_step"].get<double>() / links[0]["bytes_per_step"].get<double>(),
      7000. / 800);
  reports[3].noise.nic_bytes = std::nullopt;
  EXPECT_TRUE(record_of(make_facts(4), reports)["communication"]["nic_bytes_per_step"].is_null());
}

TEST(RunRecord, RanksAndStragglers) {
  const Json record = record_of(make_facts(2), two_reports());
  const Json& ranks = record["ranks"];
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0]["cpus"], "0-1");
  EXPECT_EQ(ranks[1]["host"], "node0");
  EXPECT_EQ(ranks[0]["step_seconds_mean"], 1.0);
  EXPECT_EQ(ranks[0]["wait_seconds_mean"], 0.25);
  EXPECT_EQ(ranks[0]["straggler"], false);
  EXPECT_EQ(ranks[1]["straggler"], true);  // 2 s of compute against 0.75 s
  EXPECT_TRUE(ranks[0]["gpu"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("ranks.gpu"));
}

TEST(RunRecord, OwnTimeOfEveryRankOverTheRun) {
  const Json few = record_of(make_facts(2), two_reports())["rank_steps"];
  EXPECT_EQ(few["steps_per_cell"], 1);
  EXPECT_EQ(few["compute_seconds"].size(), 2u);
  EXPECT_EQ(few["compute_seconds"][0][0], 0.75);  // 1 s, of which it waited 0.25 s
  // 450 steps: 150 cells of three; the first holds steps of 1, 2 and 6 s less 0.5 s each.
  std::vector<double> steps(450, 1.0);
  steps[1] = 2;
  steps[2] = 6;
  const Json many = record_of(make_facts(1), {make_report(0, steps, std::vector<double>(450, .5))});
  EXPECT_EQ(many["rank_steps"]["steps_per_cell"], 3);
  EXPECT_EQ(many["rank_steps"]["compute_seconds"][0].size(), 150u);
  EXPECT_EQ(many["rank_steps"]["compute_seconds"][0][0], 2.5);
  EXPECT_EQ(many["rank_steps"]["compute_seconds"][0][1], 0.5);
}

TEST(RunRecord, OwnTimeIsUnknownWhereTheWaitIs) {
  auto reports = two_reports();
  for (double& wait : reports[1].samples.wait_seconds) wait = std::nan("");
  const Json record = record_of(make_facts(2), reports);
  EXPECT_TRUE(record["rank_steps"].is_null());
  EXPECT_TRUE(record["unavailable"].contains("rank_steps"));
}

TEST(RunRecord, FlopsAndRoofline) {
  RunFacts facts = make_facts(2);
  Json record = record_of(facts, two_reports());
  EXPECT_EQ(record["achieved_flops"], 16e9);  // 1e9 x 32 samples / 2 s
  EXPECT_EQ(record["roofline"]["fraction"], 0.08);
  facts.gemm_flops = std::nullopt;
  record = record_of(facts, two_reports());
  EXPECT_TRUE(record["roofline"]["gemm_flops"].is_null());
  EXPECT_TRUE(record["roofline"]["fraction"].is_null());
  facts.flops_per_sample = 0;
  record = record_of(facts, two_reports());
  EXPECT_TRUE(record["flops_per_sample"].is_null());
  EXPECT_TRUE(record["achieved_flops"].is_null());
}

TEST(RunRecord, ThePublishedPeakIsThatOfTheGpusInThisPrecision) {
  RunFacts facts = make_facts(2);
  auto reports = two_reports();
  const auto roofline = [&](const std::string& device_name, const char* precision) {
    facts.device = "cuda";
    facts.device_name = device_name;
    RecordContext context{{}, system_info(), {}};
    context.config.config.precision = *from_string<Precision>(precision);
    return test::make_run_record(context, facts, reports)["roofline"];
  };
  for (RankReport& report : reports) report.gpu = report.rank;
  reports[0].gpu_uuid = "GPU-a";
  reports[1].gpu_uuid = "GPU-b";
  EXPECT_EQ(roofline("NVIDIA H100 80GB HBM3", "bf16")["published_flops"], 2 * 989e12);
  EXPECT_DOUBLE_EQ(roofline("NVIDIA H100 80GB HBM3", "bf16")["published_fraction"].get<double>(),
                   16e9 / (2 * 989e12));
  EXPECT_EQ(roofline("NVIDIA H200 NVL", "fp16")["published_flops"], 2 * 836e12);
  EXPECT_EQ(roofline("NVIDIA H200", "fp16")["published_flops"], 2 * 989e12);
  EXPECT_TRUE(roofline("NVIDIA A10G", "bf16")["published_flops"].is_null()) << "no A10";
  EXPECT_EQ(roofline("NVIDIA A100-SXM4-80GB", "bf16")["published_flops"], 2 * 312e12);
  EXPECT_EQ(roofline("Tesla V100-SXM2-16GB", "fp16")["published_flops"], 2 * 125e12);
  EXPECT_TRUE(roofline("Tesla V100-SXM2-16GB", "bf16")["published_flops"].is_null());
  EXPECT_TRUE(roofline("NVIDIA H100 80GB HBM3", "fp32")["published_flops"].is_null());
  EXPECT_TRUE(roofline("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "bf16")["published_flops"].is_null());
  reports[1].gpu_uuid = "GPU-a";
  EXPECT_EQ(roofline("NVIDIA L40S", "bf16")["published_flops"], 362e12) << "two ranks share it";
}

TEST(RunRecord, TheGuideHasThePublishedPeaks) {
  std::ifstream file(std::string(SCALEMARK_SOURCE_DIR) + "/docs/measurements.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const PublishedPeak& peak : published_peaks())
    EXPECT_THAT(
        text, testing::HasSubstr(fmt::format("| {}{} | {:.0f} |\n", peak.device,
                                             peak.bf16 ? "" : " (fp16 alone)", peak.flops / 1e12)));
}

TEST(RunRecord, MemoryAndNoise) {
  auto reports = two_reports();
  reports[1].peak_gpu_bytes = 77;
  const Json record = record_of(make_facts(2), reports);
  EXPECT_EQ(record["memory"]["peak_rss_bytes"], 1001);
  EXPECT_EQ(record["memory"]["peak_gpu_bytes"], 77);
  EXPECT_EQ(record["memory"]["gradient_buffer_bytes"], 4096);
  EXPECT_EQ(record["noise"]["steal"], 0.02);
  EXPECT_EQ(record["noise"]["context_switches"], 6);
  EXPECT_EQ(record["noise"]["communication_cpu_seconds"], 0.5);
  EXPECT_EQ(record["noise"]["error_counters"], (Json{{"node0:eth0", 2}}));
}

TEST(RunRecord, LossTraceIsThinned) {
  auto report = make_report(0, std::vector<double>(2500, 1.0), std::vector<double>(2500, 0.0));
  for (std::size_t i = 0; i < 2500; ++i) report.samples.loss[i] = static_cast<double>(i);
  const Json loss = record_of(make_facts(1), {report})["loss"];
  EXPECT_EQ(loss["first"], 0.0);
  EXPECT_EQ(loss["last"], 2499.0);
  EXPECT_EQ(loss["trace_stride"], 3);
  ASSERT_EQ(loss["trace"].size(), 834U);
  EXPECT_EQ(loss["trace"][1], 3.0);
  EXPECT_EQ(loss["diverged"], true);  // from 0 to 2499
}

TEST(RunRecord, AFiniteLossThatDivergedLeavesTheThroughput) {
  auto report = make_report(0, std::vector<double>(100, 1.0), std::vector<double>(100, 0.0));
  std::fill(report.samples.loss.begin() + 50, report.samples.loss.end(), 20.0);
  const Json record = record_of(make_facts(1), {report});
  EXPECT_EQ(record["status"], "ok");
  EXPECT_TRUE(record["throughput"].is_object());
  EXPECT_EQ(record["loss"]["diverged"], true);
  EXPECT_EQ(record["loss"]["first"], 7.0);
  EXPECT_EQ(record["loss"]["last"], 20.0);
}

TEST(RunRecord, ALossThatEndedTheLoopDiverged) {
  auto reports = two_reports();  // the step that was not finite is not in the trace
  for (auto& report : reports) report.samples.stop_reason = StopReason::non_finite;
  const Json record = record_of(make_facts(2), reports);
  EXPECT_EQ(record["status"], "invalid");
  EXPECT_THAT(record["reason"].get<std::string>(),
              testing::StartsWith("the loss or a weight is not finite"));
  EXPECT_EQ(record["loss"]["diverged"], true);
}

TEST(RunRecord, ALossThatIsNotFiniteMakesItInvalid) {
  auto reports = two_reports();
  for (auto& report : reports) report.samples.loss = {4, std::nan(""), INFINITY, INFINITY};
  const Json record = record_of(make_facts(2), reports);
  EXPECT_EQ(record["status"], "invalid");
  EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("not finite"));
  EXPECT_TRUE(record["throughput"].is_null());
  EXPECT_TRUE(record["partial_throughput"].is_null());
  EXPECT_TRUE(record["achieved_flops"].is_null());
  EXPECT_TRUE(record["roofline"]["fraction"].is_null());
  EXPECT_EQ(record["loss"]["first"], 4.0);
  EXPECT_TRUE(record["loss"]["last"].is_null());
  EXPECT_EQ(record["loss"]["diverged"], true);
  EXPECT_TRUE(record["loss"]["trace"][1].is_null());
}

TEST(RunRecord, InterruptedPublishesOnlyAPartialThroughput) {
  auto reports = two_reports();
  for (auto& report : reports) report.samples.stop_reason = StopReason::signal;
  const Json record = record_of(make_facts(2), reports);
  EXPECT_EQ(record["status"], "interrupted");
  EXPECT_TRUE(record["throughput"].is_null());
  EXPECT_EQ(record["partial_throughput"], 16.0);
  EXPECT_EQ(record["reason"], "stopped by a signal at a step boundary");
  for (auto& report : reports) report.samples.step_seconds.clear();
  const Json empty = record_of(make_facts(2), reports);
  EXPECT_TRUE(empty["partial_throughput"].is_null());
  EXPECT_TRUE(empty["step_seconds"].is_null());
  EXPECT_EQ(empty["steps"], 0);
}

TEST(RunRecord, OkWithoutStepsIsAnError) {
  EXPECT_THROW(record_of(make_facts(1), {make_report(0, {}, {})}), RunError);
  EXPECT_THROW(record_of(make_facts(1), {}), RunError);
  auto report = make_report(0, {1, 1}, {0, 0});
  report.samples.wall_seconds = 0;
  EXPECT_THROW(record_of(make_facts(1), {report}), RunError);
}

TEST(RunRecord, ConfigAndHash) {
  const LoadedConfig config;
  const Json record = record_of(make_facts(2), two_reports());
  EXPECT_EQ(record["config"], config_to_json(config));
  EXPECT_EQ(record["config_hash"], config_hash(config.config, 2));
  EXPECT_EQ(record["environment"], (Json{{"OMP_NUM_THREADS", "2"}}));
  EXPECT_EQ(record["model"], "resnet50");
}

TEST(FailedRecord, SaysWhyAndMeasuredNothing) {
  const Json record =
      make_failed_record(test::make_context(), 2, {Status::timeout, "rank 1 hangs"});
  EXPECT_EQ(record["status"], "timeout");
  EXPECT_EQ(record["reason"], "rank 1 hangs");
  EXPECT_EQ(record["unit"], "images/sec");
  EXPECT_EQ(record["world_size"], 2);
  EXPECT_EQ(record["global_batch_size"], record["batch_size_per_rank"].get<int>() * 2);
  EXPECT_TRUE(record["throughput"].is_null());
  EXPECT_THAT(record["unavailable"]["throughput"].get<std::string>(), HasSubstr("rank 1 hangs"));
}

TEST(FailedRecord, ABatchThatDoesNotDivideIsUnknown) {
  LoadedConfig config;
  config.config.scaling = Scaling::strong;
  config.config.global_batch_size = 7;
  const Json record = make_failed_record(test::make_context(config), 2, {Status::failed});
  EXPECT_TRUE(record["global_batch_size"].is_null());
  EXPECT_TRUE(record["config_hash"].is_null());
  EXPECT_EQ(record["reason"], "ended with status failed");
}

TEST(RunRecord, EveryRecordHasTheSameKeysInTheSameOrder) {
  const Json ok = record_of(make_facts(2), two_reports());
  const Json failed = make_failed_record(test::make_context(), 2, {Status::failed, "x"});
  std::vector<std::string> a, b;
  for (const auto& [key, value] : ok.items()) a.push_back(key);
  for (const auto& [key, value] : failed.items()) b.push_back(key);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.back(), "unavailable");
}

}  // namespace
}  // namespace scalemark::run_record_test
