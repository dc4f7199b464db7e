// What a rank measured, on its way to rank 0.
#include "record/rank_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "measure/rank_trace.hpp"
#include "record/wire.hpp"

namespace scalemark::rank_report_test {
namespace {

RankReport example() {
  RankReport report;
  report.rank = 3;
  report.host = "n\xe9 0";  // not UTF-8: nothing may break by a host's name
  report.affinity = {{0, 1}, {0}, {0}, 2, 1};
  report.affinity_requested = {"core:2", 2};
  report.near_cpus_of_gpu = {0, 1};
  report.gpu = 1;
  report.gpu_uuid = "GPU-1";
  report.peak_gpu_bytes = 123456789012;
  report.noise.link_bytes = {{"eth0", 1ull << 60}};
  report.noise.error_counters = {{"eth0", 2}};
  MachineReading reading;
  reading.at = 0.5;
  reading.cpu_mhz = 2000;
  reading.host_joules = 7;
  report.readings = {reading, MachineReading{}};
  report.energy = {1.5, 2.5, "why", "why not"};
  report.energy_of_host = true;
  Samples& samples = report.samples;
  samples.step_seconds = {0.1, 1.0 / 3};
  samples.wait_seconds = {0.01, std::numeric_limits<double>::quiet_NaN()};
  samples.loss = {7.5, std::numeric_limits<double>::quiet_NaN()};
  samples.phase_seconds = {0.5, 0.25, 0.125, 1, 2, 3, 4, 5};
  samples.wall_seconds = 0.44;
  samples.stop_reason = StopReason::non_finite;
  samples.loss_scaling = LossScaling{65536, 1024, true, 3};
  samples.embedding = {{96, 8}, 1000, 500, 250, 6, 0.25, 0.125};
  samples.checkpoints = {10, 1000, {0.5, 0.25}};
  samples.input = {InputPlace::host, 64, 0.125, 0.0625};
  samples.server = ServerSamples{12.5, 3, {0.25, 0.5}, {1e-5}, 2, 4, ServerEnd::overload};
  return report;
}

TEST(RankReport, SurvivesTheWayToRankZero) {
  const RankReport sent = example();
  const RankReport back = from_wire<RankReport>(to_wire(sent));
  EXPECT_EQ(to_wire(back), to_wire(sent));
  EXPECT_EQ(back.affinity.cpus, sent.affinity.cpus);
  EXPECT_EQ(back.affinity.partial_numa, sent.affinity.partial_numa);
  EXPECT_EQ(back.affinity_requested.cores, 2);
  EXPECT_EQ(back.peak_gpu_bytes, 123456789012);
  EXPECT_FALSE(back.noise.steal);
  EXPECT_EQ(back.noise.link_bytes.at("eth0"), 1ull << 60);
  ASSERT_EQ(back.readings.size(), 2u);
  EXPECT_EQ(back.readings[0].host_joules, 7);
  EXPECT_FALSE(back.readings[0].gpu_mhz);
  EXPECT_EQ(back.energy.gpu_reason, "why not");
  EXPECT_TRUE(back.energy_of_host);
}

TEST(RankReport, TakesItsSamplesAlong) {
  const Samples sent = example().samples;
  const Samples back = from_wire<RankReport>(to_wire(example())).samples;
  EXPECT_EQ(back.step_seconds, sent.step_seconds);
  EXPECT_EQ(back.phase_seconds, sent.phase_seconds);
  ASSERT_EQ(back.loss.size(), 2u);
  EXPECT_EQ(back.loss[0], 7.5);
  EXPECT_TRUE(std::isnan(back.loss[1]));
  EXPECT_TRUE(std::isnan(back.wait_seconds.at(1)));
  EXPECT_EQ(back.stop_reason, StopReason::non_finite);
  ASSERT_TRUE(back.loss_scaling);
  EXPECT_EQ(back.loss_scaling->skipped_steps, 3);
  EXPECT_EQ(back.embedding.rows, sent.embedding.rows);
  EXPECT_EQ(back.checkpoints.write_seconds, sent.checkpoints.write_seconds);
  EXPECT_EQ(back.input.place, InputPlace::host);
  ASSERT_TRUE(back.server);
  EXPECT_EQ(back.server->ended_by, ServerEnd::overload);
  EXPECT_FALSE(from_wire<Samples>(to_wire(Samples())).server);
}

TEST(RankReport, ForeignTextIsRefusedWithItsPlace) {
  const auto why = [](const Json& json) -> std::string {
    try {
      from_wire<RankReport>(json.dump());
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  };
  Json json = Json::parse(to_wire(example()));
  json["samples"]["stop_reason"] = "lunch";
  EXPECT_THAT(why(json), testing::HasSubstr("/samples/stop_reason is \"lunch\", not one of"));
  json = Json::parse(to_wire(example()));
  json["samples"].erase("wall_seconds");
  EXPECT_THAT(why(json), testing::HasSubstr("/samples/wall_seconds is missing"));
  EXPECT_THAT(why("text"), testing::HasSubstr("not of type object"));
  EXPECT_THROW(from_wire<RankReport>("{"), RunError);
}

TEST(RankTrace, SendsItsSums) {
  RankTrace sent;
  sent.steps = 4;
  sent.dropped_spans = 3;
  sent.operators = {{"aten::conv", "convolution", 8, 0.5, 8e9}, {"aten::mm", "other", 1, 0.5, {}}};
  const RankTrace back = from_wire<RankTrace>(to_wire(sent));
  EXPECT_EQ(back.dropped_spans, 3);
  EXPECT_EQ(back.operators.at(0).flops, 8e9);
  EXPECT_EQ(back.operators.at(1).flops, std::nullopt);
}

}  // namespace
}  // namespace scalemark::rank_report_test
