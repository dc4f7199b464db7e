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

/// 4 buckets that are scattered, 0.5 s each, and 400 bytes of weights that are gathered, 2 s.
BucketPlan sharded(Hiding hiding) {
  BucketPlan made = plan(hiding);
  made.shard = {.divides = true, .kept_bytes = 400, .kept_messages = 4};
  return made;
}

/// The same gradients and weights in two blocks with half of the computation each.
BucketPlan two_blocks() {
  BucketPlan made = plan(Hiding::backward);
  made.shard = {.divides = true,
                .after_passes = true,
                .kept_messages = 0,
                .blocks = 2,
                .block_bytes = 200,
                .block_share = 0.5};
  return made;
}

CommunicationCost cost_of(const BucketPlan& plan, const Network& network, std::int64_t passes = 1) {
  return communication_cost(plan, 3, 2, network, Allreduce::ring, passes);
}

TEST(ShardSchedule, SumsHideInTheBackwardPassAndGathersInTheForwardPass) {
  const auto slow = cost_of(sharded(Hiding::backward), link(100));
  EXPECT_DOUBLE_EQ(slow.sums.total, 2);
  EXPECT_DOUBLE_EQ(slow.sums.exposed, 0.5);  // ready every 0.5 s, which each takes
  EXPECT_DOUBLE_EQ(slow.gathers.total, 2);
  // The first comes until 0.5 s; each other one 0.25 s after its quarter of the pass could begin.
  EXPECT_DOUBLE_EQ(slow.gathers.exposed, 0.5 + 3 * 0.25);
  EXPECT_DOUBLE_EQ(slow.total_seconds, 4);
  EXPECT_DOUBLE_EQ(slow.exposed_seconds, 1.75);
  EXPECT_NEAR(cost_of(sharded(Hiding::backward), link(1e12)).exposed_seconds, 0, 1e-9);
  EXPECT_DOUBLE_EQ(cost_of(sharded(Hiding::none), link(100)).exposed_seconds, 1.25 + 2);
  EXPECT_EQ(communication_cost(sharded(Hiding::none), 3, 1, link(100)).total_seconds, 0);
}

TEST(ShardSchedule, TwoSumsAtMostAreUnderWayWhereGradientsAreFreed) {
  // 2.5 s each, ready at 1.5 s, and again every 0.5 s: the last of 10 s ends at 3.5 s + 10 s from
  // the update on, whether or not the backward pass waits in between.
  BucketPlan plan = sharded(Hiding::backward);
  plan.shard.kept_messages = 0;
  const double free = cost_of(plan, link(20)).exposed_seconds;
  EXPECT_DOUBLE_EQ(free, 1.5 + 10 - 3);
  plan.shard.after_passes = true;
  EXPECT_DOUBLE_EQ(cost_of(plan, link(20)).exposed_seconds, free);
}

TEST(ShardSchedule, BlocksComeWhileTheOneBeforeComputes) {
  // The first block comes until 1 s, computes 0.5 s, waits 0.5 s for the second, which computes 0.5
  // s and 1 s of its backward pass while the first comes again. Its sum ends at 4.5 s, when that of
  // the first begins.
  const auto slow = cost_of(two_blocks(), link(100));
  EXPECT_DOUBLE_EQ(slow.gathers.total, 3);
  EXPECT_DOUBLE_EQ(slow.gathers.exposed, 1.5);
  EXPECT_DOUBLE_EQ(slow.sums.total, 2);
  EXPECT_DOUBLE_EQ(slow.sums.exposed, 1);
  // Ten times as fast, the first block alone is waited for, and the last sum.
  const auto fast = cost_of(two_blocks(), link(1000));
  EXPECT_NEAR(fast.gathers.exposed, 0.1, 1e-12);
  EXPECT_NEAR(fast.sums.exposed, 0.1, 1e-12);
}

TEST(ShardSchedule, EveryMicroBatchGathersAndScatters) {
  // The second one finds the first block where the backward pass has left it.
  const auto two = cost_of(two_blocks(), link(1000), 2);
  EXPECT_NEAR(two.gathers.total, 0.5, 1e-12);
  EXPECT_NEAR(two.sums.total, 0.4, 1e-12);
  EXPECT_NEAR(two.sums.exposed, 0.2, 1e-12);
  // ZeRO-1 scatters once.
  EXPECT_DOUBLE_EQ(cost_of(sharded(Hiding::backward), link(100), 2).sums.total, 2);
}

TEST(ShardSchedule, TheWorkOfHiddenCommunicationIsNotHidden) {
  Network network = link(1e12);
  network.work_seconds_per_byte = 1e-3;  // for half of the bytes
  EXPECT_NEAR(cost_of(sharded(Hiding::backward), network).sums.exposed, 0.2, 1e-9);
  const auto blocks = cost_of(two_blocks(), network);
  EXPECT_NEAR(blocks.sums.exposed, 0.2, 1e-9);
  EXPECT_NEAR(blocks.gathers.exposed, 0.2, 1e-9);  // the two that hide
}

TEST(StepModel, ShowsTheShareThatDoesNotHide) {
  CostParameters parameters;
  parameters.compute_seconds = 3;
  parameters.network = link(100);
  parameters.overlap = 0.5;
  const StepCost step = step_cost(parameters, {1, two_blocks()}, 2, 0, Allreduce::ring);
  EXPECT_DOUBLE_EQ(step.gathers.exposed, 1.5 + 0.75);
  EXPECT_DOUBLE_EQ(step.sums.exposed, 1 + 0.5);
  EXPECT_DOUBLE_EQ(step.exposed_seconds, step.gathers.exposed + step.sums.exposed);
  EXPECT_DOUBLE_EQ(step.communication_seconds, 5);
  StepWork halves{2, two_blocks()};
  halves.buckets.shard.micro_batch = 1;
  EXPECT_DOUBLE_EQ(step_cost(parameters, halves, 2, 0, Allreduce::ring).sums.total, 4);
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
