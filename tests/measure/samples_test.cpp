// Samples on their way from a rank to rank 0.
#include "measure/samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "error.hpp"

namespace scalemark::samples_test {
namespace {

Samples example() {
  Samples samples;
  samples.step_seconds = {0.1, 1.0 / 3};
  samples.wait_seconds = {0.01, 0.02};
  samples.loss = {7.5, std::numeric_limits<double>::quiet_NaN()};
  samples.phase_seconds = {0.5, 0.25, 0.125, 1, 2, 3, 4, 5};
  samples.wall_seconds = 0.44;
  samples.warm_up_seconds = 1.25;
  samples.communication_seconds = 0.05;
  samples.stop_reason = StopReason::non_finite;
  samples.embedding = {{96, 8}, 1000, 500, 250, 6, 0.25, 0.125};
  samples.checkpoints = {10, 1000, {0.5, 0.25}};
  samples.input = {InputPlace::host, 64, 0.125, 0.0625};
  samples.server = {12.5, 3, {0.25, 0.5}, {1e-5}, 2, 4, ServerEnd::overload};
  return samples;
}

TEST(Samples, SurviveTheJourneyAsText) {
  const Samples sent = example();
  const Samples received = samples_from_json(nlohmann::json::parse(to_json(sent).dump()));
  EXPECT_EQ(received.step_seconds, sent.step_seconds);
  EXPECT_EQ(received.wait_seconds, sent.wait_seconds);
  EXPECT_EQ(received.phase_seconds, sent.phase_seconds);
  ASSERT_EQ(received.loss.size(), 2u);
  EXPECT_EQ(received.loss[0], 7.5);
  EXPECT_TRUE(std::isnan(received.loss[1]));
  EXPECT_EQ(received.wall_seconds, sent.wall_seconds);
  EXPECT_EQ(received.warm_up_seconds, sent.warm_up_seconds);
  EXPECT_EQ(received.communication_seconds, sent.communication_seconds);
  EXPECT_EQ(received.stop_reason, StopReason::non_finite);
  EXPECT_EQ(received.embedding.rows, sent.embedding.rows);
  EXPECT_EQ(received.embedding.gathered_bytes, 1000);
  EXPECT_EQ(received.embedding.payload_bytes, 500);
  EXPECT_EQ(received.embedding.wire_bytes, 250);
  EXPECT_EQ(received.embedding.messages, 6);
  EXPECT_EQ(received.embedding.exchange_seconds, 0.25);
  EXPECT_EQ(received.embedding.densify_seconds, 0.125);
  EXPECT_EQ(received.checkpoints.every, 10);
  EXPECT_EQ(received.checkpoints.bytes, 1000);
  EXPECT_EQ(received.checkpoints.write_seconds, sent.checkpoints.write_seconds);
  EXPECT_EQ(received.input.place, InputPlace::host);
  EXPECT_EQ(received.input.bytes_per_step, 64);
  EXPECT_EQ(received.input.copy_seconds, 0.125);
  EXPECT_EQ(received.input.wait_seconds, 0.0625);
  ASSERT_TRUE(received.server);
  EXPECT_EQ(received.server->arrival_rate, 12.5);
  EXPECT_EQ(received.server->offered, 3);
  EXPECT_EQ(received.server->queue_seconds, sent.server->queue_seconds);
  EXPECT_EQ(received.server->timer_lateness, sent.server->timer_lateness);
  EXPECT_EQ(received.server->batches, 2);
  EXPECT_EQ(received.server->queue_length_max, 4);
  EXPECT_EQ(received.server->ended_by, ServerEnd::overload);
  EXPECT_FALSE(samples_from_json(to_json(Samples())).server);
}

TEST(Samples, EveryStopReasonHasItsOwnName) {
  for (const auto reason : {StopReason::num_batches, StopReason::target_ci, StopReason::max_seconds,
                            StopReason::target_loss, StopReason::signal, StopReason::non_finite}) {
    Samples samples = example();
    samples.stop_reason = reason;
    EXPECT_EQ(samples_from_json(to_json(samples)).stop_reason, reason) << to_string(reason);
  }
}

TEST(Samples, ForeignTextIsRefused) {
  auto json = to_json(example());
  json["stop_reason"] = "lunch";
  EXPECT_THROW(samples_from_json(json), RunError);
  json = to_json(example());
  json.erase("wall_seconds");
  EXPECT_THROW(samples_from_json(json), RunError);
  EXPECT_THROW(samples_from_json("text"), RunError);
}

}  // namespace
}  // namespace scalemark::samples_test
