// What buckets hide and what they expose, by hand: a step of 3 s, its backward pass from 1 s to 3
// s.
#include <gtest/gtest.h>

#include "analysis/projection/step_model.hpp"

namespace scalemark::bucket_schedule_test {
namespace {

/// Two ranks, bytes of the ring = payload: `rate` bytes/s.
Network link(double rate) { return {{0, 0}, {0, 1 / rate}, 0, 1}; }

/// 4 buckets of 100 bytes.
BucketPlan plan(Hiding hiding) { return {400, 100, 100, hiding}; }

CommunicationCost cost(Hiding hiding, double rate, std::int64_t ranks = 2) {
  return communication_cost(plan(hiding), 3, ranks, link(rate), Allreduce::ring);
}

TEST(BucketSchedule, WithoutHidingEverythingIsExposed) {
  EXPECT_DOUBLE_EQ(cost(Hiding::none, 100).total_seconds, 4);
  EXPECT_DOUBLE_EQ(cost(Hiding::none, 100).exposed_seconds, 4);
}

TEST(BucketSchedule, OfAFastNetworkTheLastBucketIsExposed) {
  EXPECT_NEAR(cost(Hiding::backward, 1000).exposed_seconds, 0.1, 1e-12);
  EXPECT_NEAR(cost(Hiding::backward, 1e12).exposed_seconds, 0, 1e-9);
}

TEST(BucketSchedule, OfASlowNetworkOnlyTheWaitForTheFirstIsHidden) {
  // The first bucket is ready at 1.5 s; 4 x 1 s follow without a gap.
  EXPECT_DOUBLE_EQ(cost(Hiding::backward, 100).exposed_seconds, 1.5 + 4 - 3);
  EXPECT_DOUBLE_EQ(cost(Hiding::backward, 100).total_seconds, 4);
}

TEST(BucketSchedule, ASmallFirstBucketStartsEarlier) {
  BucketPlan early = plan(Hiding::backward);
  early.first_bucket_bytes = 4;
  const auto made = communication_cost(early, 3, 2, link(100), Allreduce::ring);
  EXPECT_LT(made.exposed_seconds, cost(Hiding::backward, 100).exposed_seconds);
  EXPECT_DOUBLE_EQ(made.total_seconds, 4);
}

TEST(BucketSchedule, IntoTheNextStepHidesMore) {
  EXPECT_DOUBLE_EQ(cost(Hiding::step, 100).exposed_seconds, 1);       // 4 s of 3 s
  EXPECT_NEAR(cost(Hiding::step, 1000).exposed_seconds, 0.1, 1e-12);  // needed at once
}

TEST(BucketSchedule, OneRankCommunicatesNothing) {
  EXPECT_EQ(cost(Hiding::backward, 100, 1).total_seconds, 0);
  EXPECT_EQ(cost(Hiding::none, 100, 1).exposed_seconds, 0);
}

TEST(BucketSchedule, TheWorkOfHiddenCommunicationIsNotHidden) {
  Network network = link(1e12);  // 400 bytes at 1 ms of work each
  network.work_seconds_per_byte = 1e-3;
  EXPECT_NEAR(communication_cost(plan(Hiding::backward), 3, 2, network).exposed_seconds, 0.4, 1e-9);
  EXPECT_NEAR(communication_cost(plan(Hiding::none), 3, 2, network).exposed_seconds, 0, 1e-9);
  // Who waits for the network has time for it: buckets of 1 s from the first one, ready at 1.6 s.
  network.link.seconds_per_byte = 0.01;
  EXPECT_NEAR(communication_cost(plan(Hiding::backward), 3, 2, network).exposed_seconds,
              1.6 + 4 - 3, 1e-9);
}

TEST(BucketSchedule, CountlessBucketsAreMerged) {
  const BucketPlan tiny{1e9, 1, 1, Hiding::backward};
  const auto made = communication_cost(tiny, 1, 2, link(1e9), Allreduce::ring);
  EXPECT_NEAR(made.total_seconds, 1, 1e-3);
}

TEST(StepModel, AddsItsParts) {
  CostParameters parameters;
  parameters.compute_seconds = 3;
  parameters.reference_batch = 4;
  parameters.fixed_share = 0.25;
  parameters.straggler_deviation = 0.1;
  parameters.network = link(100);
  const StepWork work{4, plan(Hiding::none)};
  const StepCost step = step_cost(parameters, work, 2, 0.5, Allreduce::ring);
  EXPECT_DOUBLE_EQ(step.compute_seconds, 3);
  EXPECT_DOUBLE_EQ(step.straggler_seconds, 0.15);
  EXPECT_DOUBLE_EQ(step.exposed_seconds, 4);
  EXPECT_DOUBLE_EQ(step.seconds(), 7.15);
  // Half the batch takes away half of what grows with it.
  const StepCost half = step_cost(parameters, {2, plan(Hiding::none)}, 1, 0);
  EXPECT_DOUBLE_EQ(half.seconds(), 3 * (0.25 + 0.75 / 2));
  EXPECT_DOUBLE_EQ(step_cost(parameters, work, 1, 0, Allreduce::ring, 1.5).seconds(), 4.5);
}

}  // namespace
}  // namespace scalemark::bucket_schedule_test
