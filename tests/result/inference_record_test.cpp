// The inference record: exact values of hand-made latencies, and what is null in which status.
#include "result/inference_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "error.hpp"
#include "result/support.hpp"

namespace scalemark::inference_record_test {
namespace {
using test::make_report;
using testing::AllOf;
using testing::HasSubstr;

InferenceFacts facts_of(int world_size) {
  InferenceFacts facts;
  static_cast<RunFacts&>(facts) = test::make_facts(world_size);  // 16 images a query
  facts.fused = "on";
  return facts;
}

LoadedConfig config() {
  LoadedConfig loaded;
  loaded.command = Command::infer;
  return loaded;
}

RankReport report_of(int rank, const std::vector<double>& latency) {
  return make_report(rank, latency, std::vector<double>(latency.size(), 0.));
}

Json record_of(const std::vector<RankReport>& reports) {
  return measured_json(make_inference(test::make_context(config()),
                                      facts_of(static_cast<int>(reports.size())), reports));
}

/// 1, 2, ..., n milliseconds, not in order.
std::vector<double> milliseconds(int n) {
  std::vector<double> seconds;
  for (int i = 0; i < n; ++i) seconds.push_back(1e-3 * (1 + (i * 7919) % n));
  return seconds;
}

TEST(InferenceRecord, OneRank) {
  const Json record = record_of({report_of(0, {1, 3, 2, 2})});
  EXPECT_EQ(record["status"], "ok");
  EXPECT_EQ(record["throughput"]["mean"], 8.0);    // 4 x 16 images in 8 s
  EXPECT_EQ(record["throughput"]["median"], 8.0);  // 16 images in 2 s
  EXPECT_NEAR(record["throughput"]["jitter"].get<double>(), 1.4826 * 4 / 3, 1e-12);
  EXPECT_EQ(record["throughput"]["per_rank_min"], 8.0);
  EXPECT_EQ(record["throughput"]["per_rank_max"], 8.0);
  EXPECT_TRUE(record["throughput"]["ci95"].is_null());
  EXPECT_EQ(record["latency_seconds"]["mean"], 2.0);
  EXPECT_EQ(record["latency_seconds"]["p50"], 2.0);
  EXPECT_EQ(record["latency_seconds"]["samples"], (std::vector{1., 3., 2., 2.}));
  EXPECT_EQ(record["queries"], 4);
  EXPECT_EQ(record["units_per_query"], 16.0);
  EXPECT_EQ(record["wall_seconds"], 8.0);
  EXPECT_EQ(record["achieved_flops"], 8e9);  // 1e9 FLOPs an image
  EXPECT_EQ(record["fused"], "on");
  EXPECT_EQ(record["kernels"], "scalemark");
}

TEST(InferenceRecord, RanksAreReplicasWhoseRatesAddUp) {
  // Rank 0 answers 8 queries of 1 s, rank 1 in the same 8 s 4 of 2 s.
  const Json record =
      record_of({report_of(0, std::vector<double>(8, 1.)), report_of(1, {2, 2, 2, 2})});
  EXPECT_EQ(record["queries"], 12);
  EXPECT_EQ(record["throughput"]["mean"], 24.0);    // 12 x 16 images in 8 s
  EXPECT_EQ(record["throughput"]["median"], 24.0);  // 16 / 1 + 16 / 2
  EXPECT_EQ(record["throughput"]["per_rank_min"], 8.0);
  EXPECT_EQ(record["throughput"]["per_rank_max"], 16.0);
  EXPECT_EQ(record["throughput"]["jitter"], 0.0);
  EXPECT_EQ(record["ranks"][0]["throughput"], 16.0);
  EXPECT_EQ(record["ranks"][1]["throughput"], 8.0);
  EXPECT_EQ(record["ranks"][1]["queries"], 4);
  EXPECT_EQ(record["ranks"][1]["latency_seconds_mean"], 2.0);
  EXPECT_EQ(record["ranks"][0]["straggler"], false);
  EXPECT_EQ(record["ranks"][1]["straggler"], true);
  EXPECT_EQ(record["achieved_flops"], 24e9);
  EXPECT_EQ(record["latency_seconds"]["samples"].size(), 12u);
}

TEST(InferenceRecord, QuantilesNeedAsManyQueriesAsTheySplit) {
  EXPECT_EQ(samples_for_quantile(0.5), 2u);
  EXPECT_EQ(samples_for_quantile(0.9), 10u);
  EXPECT_EQ(samples_for_quantile(0.99), 100u);
  EXPECT_EQ(samples_for_quantile(0.999), 1000u);
  const Json few = record_of({report_of(0, milliseconds(999))});
  EXPECT_TRUE(few["latency_seconds"]["p99_9"].is_null());
  EXPECT_THAT(few["unavailable"]["latency_seconds.p99_9"].get<std::string>(),
              HasSubstr("fewer than 1000"));
  const Json enough = record_of({report_of(0, milliseconds(1000))})["latency_seconds"];
  EXPECT_NEAR(enough["p50"].get<double>(), 0.5005, 1e-12);  // between 500 and 501 ms
  EXPECT_NEAR(enough["p90"].get<double>(), 0.9001, 1e-12);  // 1 + 0.9 x 999
  EXPECT_NEAR(enough["p99"].get<double>(), 0.99001, 1e-12);
  EXPECT_NEAR(enough["p99_9"].get<double>(), 0.999001, 1e-12);
  const Json one = record_of({report_of(0, {0.5})});
  for (const char* key : {"p50", "p90", "p99", "p99_9"})
    EXPECT_TRUE(one["latency_seconds"][key].is_null()) << key;
  EXPECT_EQ(one["throughput"]["median"], 32.0);
}

TEST(InferenceRecord, QueriesOfAllRanksCountTogether) {
  const Json latency = record_of({report_of(0, std::vector<double>(5, 1.)),
                                  report_of(1, std::vector<double>(5, 3.))})["latency_seconds"];
  EXPECT_EQ(latency["p50"], 2.0);
  EXPECT_EQ(latency["p90"], 3.0);
  EXPECT_EQ(latency["mean"], 2.0);
}

TEST(InferenceRecord, AnIntervalNeedsThirtySamples) {
  const Json throughput = record_of({report_of(0, milliseconds(400))})["throughput"];
  ASSERT_FALSE(throughput["ci95"].is_null());
  EXPECT_LT(throughput["ci95"][0], throughput["mean"]);
  EXPECT_GT(throughput["ci95"][1], throughput["mean"]);
}

TEST(InferenceRecord, TheMostSevereReasonOfAnyRankCounts) {
  auto reports = std::vector{report_of(0, {1, 1}), report_of(1, {1})};
  reports[0].samples.stop_reason = StopReason::max_seconds;
  EXPECT_EQ(record_of(reports)["stop_reason"], "max_seconds");
  reports[1].samples.stop_reason = StopReason::signal;
  const Json record = record_of(reports);
  EXPECT_EQ(record["status"], "interrupted");
  EXPECT_EQ(record["stop_reason"], "signal");
  EXPECT_TRUE(record["throughput"].is_null());
  EXPECT_EQ(record["partial_throughput"], 24.0);  // 3 x 16 images in 2 s
  EXPECT_TRUE(record["achieved_flops"].is_null());
}

LoadedConfig server_config(double bound_ms = 0) {
  RunConfig keys;
  keys.mode = InferenceMode::server;
  keys.arrival_rate = 10;
  if (bound_ms > 0) keys.latency_bound_ms = bound_ms;
  LoadedConfig loaded = config();
  loaded.config = ResolvedConfig(keys);
  return loaded;
}

/// Half of each latency in the queue.
RankReport served(int rank, const std::vector<double>& latency, double wall_seconds) {
  RankReport report = report_of(rank, latency);
  ServerSamples& server = report.samples.server.emplace();
  server.arrival_rate = 5;
  server.offered = static_cast<std::int64_t>(latency.size());
  for (const double seconds : latency) server.queue_seconds.push_back(seconds / 2);
  server.timer_lateness = {1e-5, 3e-5};
  server.batches = server.offered / 2;
  server.queue_length_max = 3 + rank;
  report.samples.wall_seconds = wall_seconds;
  return report;
}

Json server_record(const LoadedConfig& loaded, const std::vector<RankReport>& reports,
                   std::optional<RateSearch> search = std::nullopt) {
  InferenceFacts facts = facts_of(static_cast<int>(reports.size()));
  facts.rate_search = std::move(search);
  return measured_json(make_inference(test::make_context(loaded), facts, reports));
}

TEST(ServerRecord, RatesAreTheOfferedAndTheAnsweredOfAllRanks) {
  const Json record = server_record(
      server_config(600), {served(0, milliseconds(1000), 100), served(1, milliseconds(1000), 50)});
  const Json& server = record["server"];
  EXPECT_EQ(server["arrival_rate"], 10.);
  EXPECT_EQ(server["achieved_rate"], 20.);  // 2000 in 100 s
  EXPECT_NE(record["warnings"].dump().find("20.00 queries/s were answered, and 10.00 offered"),
            std::string::npos);
  EXPECT_EQ(server["queries_offered"], 2000);
  EXPECT_EQ(server["batch_size_mean"], 2.);
  EXPECT_NEAR(server["queue_seconds"]["p50"].get<double>(), 0.5005 / 2, 1e-3);
  EXPECT_NEAR(server["service_seconds"]["mean"].get<double>(), 0.5005 / 2, 1e-12);
  EXPECT_NEAR(server["queue_length"]["mean"].get<double>(), 2000 * 0.25025 / 100, 1e-9);
  EXPECT_EQ(server["queue_length"]["max"], 4);
  EXPECT_NEAR(server["timer_lateness_seconds"]["mean"].get<double>(), 2e-5, 1e-12);
  EXPECT_EQ(server["timer_lateness_seconds"]["waits"], 4);
  EXPECT_NEAR(server["latency_at_quantile_seconds"].get<double>(), 0.99, 1e-3);
  EXPECT_EQ(server["holds"], false);  // 990 of 600 ms
  EXPECT_EQ(record["throughput"]["mean"], 2000 * 16 / 100.);
  for (const char* key : {"median", "jitter", "per_rank_min", "per_rank_max", "ci95"})
    EXPECT_TRUE(record["throughput"][key].is_null()) << key;
  EXPECT_EQ(record["ranks"][1]["throughput"], 1000 * 16 / 50.);
  EXPECT_EQ(
      server_record(server_config(995), {served(0, milliseconds(1000), 1)})["server"]["holds"],
      true);
}

TEST(ServerRecord, AStragglerIsSlowInServiceAndNotInTheQueue) {
  auto reports = std::vector{served(0, {2, 2}, 4), served(1, {4, 4}, 4)};  // half in the queue
  EXPECT_EQ(server_record(server_config(), reports)["ranks"][1]["straggler"], true);
  reports[1].samples.server->queue_seconds = {3, 3};
  EXPECT_EQ(server_record(server_config(), reports)["ranks"][1]["straggler"], false);
}

TEST(ServerRecord, AQuantileNeedsTenQueriesBeyondIt) {
  const Json record = server_record(server_config(500), {served(0, milliseconds(999), 1)});
  EXPECT_TRUE(record["latency_seconds"]["p99"].is_null());
  EXPECT_THAT(record["unavailable"]["latency_seconds.p99"].get<std::string>(),
              AllOf(HasSubstr("fewer than 1000"), HasSubstr("--min_query_count")));
  EXPECT_FALSE(record["latency_seconds"]["p90"].is_null());
  EXPECT_TRUE(record["server"]["holds"].is_null());
  EXPECT_THAT(record["unavailable"]["server.latency_at_quantile_seconds"].get<std::string>(),
              HasSubstr("fewer than 1000"));
}

TEST(ServerRecord, AnOverloadedServerHasNoQuantilesAndHoldsNoBound) {
  auto reports =
      std::vector{served(0, milliseconds(2000), 100), served(1, milliseconds(2000), 100)};
  reports[1].samples.server->ended_by = ServerEnd::overload;
  const Json record = server_record(server_config(5000), reports);
  EXPECT_EQ(record["status"], "ok");
  EXPECT_EQ(record["server"]["ended_by"], "overload");
  EXPECT_EQ(record["server"]["holds"], false);
  for (const char* key : {"p50", "p99"}) EXPECT_TRUE(record["latency_seconds"][key].is_null());
  EXPECT_THAT(record["unavailable"]["latency_seconds.p50"].get<std::string>(),
              HasSubstr("overloaded"));
}

TEST(ServerRecord, TrialsOfASearchAndOtherModes) {
  RateSearch search;
  search.limited_by = "no rate held it";
  search.trials = {{8, false, 100, 30, 2, std::nullopt, ServerEnd::late, false}};
  const Json record = server_record(server_config(1), {served(0, milliseconds(50), 1)}, search);
  EXPECT_EQ(record["server"]["search"]["trials"][0]["ended_by"], "late");
  EXPECT_THAT(record["unavailable"]["server.search.found"].get<std::string>(),
              HasSubstr("no rate held it"));
  const Json given = server_record(server_config(), {served(0, milliseconds(50), 1)});
  EXPECT_TRUE(given["server"]["search"].is_null());
  EXPECT_TRUE(given["server"]["holds"].is_null());
  EXPECT_TRUE(record_of({report_of(0, {1})})["server"].is_null());
}

TEST(InferenceRecord, OkWithoutQueriesIsAnError) {
  EXPECT_THROW(record_of({report_of(0, {})}), RunError);
  EXPECT_THROW(record_of({report_of(0, {1}), report_of(1, {})}), RunError);
}

TEST(InferenceRecord, ConfigHoldsTheKeysOfInferOnly) {
  const Json record = record_of({report_of(0, {1})});
  EXPECT_TRUE(record["config"].contains("mode"));
  EXPECT_TRUE(record["config"].contains("kernels"));
  EXPECT_FALSE(record["config"].contains("momentum"));
  EXPECT_EQ(record["config_hash"], config_hash({}, 1, Command::infer));
  EXPECT_NE(record["config_hash"], config_hash({}, 1));
  EXPECT_FALSE(record["memory"].contains("gradient_buffer_bytes"));
}

TEST(InferenceRecord, EveryRecordHasTheSameKeysInTheSameOrder) {
  const Json ok = record_of({report_of(0, {1})});
  const Json failed = make_failed_inference_record(test::make_context(config()), 2,
                                                   {Status::timeout, "rank 1 hangs"});
  EXPECT_THAT(failed["unavailable"]["throughput"].get<std::string>(), HasSubstr("rank 1 hangs"));
  std::vector<std::string> a, b;
  for (const auto& [key, value] : ok.items()) a.push_back(key);
  for (const auto& [key, value] : failed.items()) b.push_back(key);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.back(), "unavailable");
}

}  // namespace
}  // namespace scalemark::inference_record_test
