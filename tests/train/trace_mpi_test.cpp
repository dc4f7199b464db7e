// A trace of real training: what it holds, on every rank, and that it leaves no trace in what is
// measured after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tests/support/mpi_support.hpp"
#include "train/trace/step_trace.hpp"
#include "train/trainer.hpp"
#include "training_support.hpp"

namespace scalemark::trace_mpi_test {
namespace {

using testing::small_config;
using testing::world;

constexpr int kSteps = 4;

class Traced : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = small_config();
    device_ = make_device_backend(Device::cpu, 0);
    communicator_ = make_communicator(
        world().size() > 1 ? CommunicatorKind::mpi : CommunicatorKind::none, world(), -1);
    trainer_.emplace(config_, *device_, world(), plan_batch(config_, world().size()));
    trainer_->keep_initial_weights();
  }

  RankTrace trace(std::size_t most_spans = 100'000) {
    StepTrace to(*device_, most_spans);
    const Samples samples = trainer_->trace(world(), *communicator_, kSteps, to);
    uncertainty_ = to.clocks().uncertainty_seconds();
    return to.take(samples);
  }

  RunConfig config_;
  std::unique_ptr<DeviceBackend> device_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<Trainer> trainer_;
  double uncertainty_ = 0;
};

std::vector<Span> of_category(const RankTrace& trace, const std::string& category) {
  std::vector<Span> spans;
  for (const Span& span : trace.spans)
    if (trace.labels.at(span.label).category == category) spans.push_back(span);
  return spans;
}

double seconds_of_all(const std::vector<Span>& spans) {
  double seconds = 0;
  for (const Span& span : spans) seconds += span.end - span.begin;
  return seconds;
}

TEST_F(Traced, HoldsEveryStepPhaseBucketAndWait) {
  trainer_->measure(world(), *communicator_, nullptr);
  const RankTrace traced = trace();
  const auto steps = of_category(traced, "step");
  ASSERT_EQ(steps.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(traced.steps, kSteps);
  // Phases fill the steps without a gap.
  EXPECT_NEAR(seconds_of_all(of_category(traced, "phase")), seconds_of_all(steps), 1e-9);
  const auto buckets = of_category(traced, "bucket"), waits = of_category(traced, "wait");
  const bool alone = world().size() == 1;
  EXPECT_EQ(buckets.size(), alone ? 0 : kSteps * trainer_->parameters().buckets().size());
  EXPECT_EQ(waits.empty(), alone);
  for (const Span& bucket : buckets) {
    EXPECT_GT(bucket.amount, 0);
    EXPECT_GE(bucket.begin, steps.front().begin);
    EXPECT_LE(bucket.end, steps.back().end);
  }
  for (const Span& span : traced.spans)
    EXPECT_TRUE(traced.threads.contains(span.thread)) << span.thread;
  EXPECT_EQ(uncertainty_ > 0, world().rank() > 0);
}

TEST_F(Traced, LeavesNothingInWhatIsMeasuredAfterIt) {
  const auto before = trainer_->measure(world(), *communicator_, nullptr).loss;
  trace();
  EXPECT_FALSE(at::hasGlobalCallbacks());
  EXPECT_EQ(trainer_->measure(world(), *communicator_, nullptr).loss, before);
}

TEST_F(Traced, WithoutRoomHasTheStepsAndTheTotalsAllTheSame) {
  trainer_->measure(world(), *communicator_, nullptr);
  const RankTrace whole = trace(), part = trace(10);
  EXPECT_EQ(of_category(part, "operator").size() + of_category(part, "autograd").size(), 10u);
  EXPECT_GT(part.dropped_spans, 0);
  EXPECT_EQ(of_category(part, "step").size(), static_cast<std::size_t>(kSteps));
  const auto flops = [](const RankTrace& trace) {
    double sum = 0;
    for (const OperatorTotal& one : trace.operators) sum += one.flops.value();
    return sum;
  };
  EXPECT_GT(flops(whole), 0);
  EXPECT_EQ(flops(part), flops(whole));
}

}  // namespace
}  // namespace scalemark::trace_mpi_test
