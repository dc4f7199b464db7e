// What Kineto gives, here of the host's operators: names, a thread a stream, the place on this
// machine's clock, bounds. Kernels come the same way.
#include "train/trace/kernel_recorder.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "measure/clock.hpp"

namespace scalemark::kernel_recorder_test {
namespace {

struct Recorded {
  RankTrace trace;
  double begin, end;
};

Recorded record(std::size_t most_spans) {
  Recorded recorded;
  KernelRecorder recorder(most_spans, /*of_host=*/true);
  recorded.begin = steady_seconds();
  for (int i = 0; i < 3; ++i) at::mm(at::ones({64, 64}), at::ones({64, 64}));
  recorded.end = steady_seconds();
  recorder.take(recorded.trace);
  return recorded;
}

TEST(KernelRecorder, PlacesWhatKinetoSawOnTheClockOfTheSteps) {
  const auto [trace, begin, end] = record(1000);
  long products = 0;
  for (const Span& span : trace.spans) {
    const SpanLabel& label = trace.labels.at(span.label);
    EXPECT_EQ(label.category, "operator");
    EXPECT_GE(span.thread, KernelRecorder::kFirstStream);
    EXPECT_TRUE(trace.threads.contains(span.thread));
    // The two clocks are read one after the other: a thread may lose its CPU in between.
    EXPECT_GT(span.begin, begin - 1);
    EXPECT_LT(span.end, end + 1);
    EXPECT_GE(span.end, span.begin);
    products += label.name == "aten::mm";
  }
  EXPECT_EQ(products, 3);
  EXPECT_EQ(trace.dropped_spans, 0);
}

TEST(KernelRecorder, CountsWhatItDoesNotKeep) {
  const RankTrace all = record(1000).trace, few = record(2).trace;
  EXPECT_EQ(few.spans.size(), 2u);
  EXPECT_EQ(few.spans.size() + static_cast<std::size_t>(few.dropped_spans), all.spans.size());
}

/// An exception may end a pass before anybody takes what it recorded.
TEST(KernelRecorder, CanBeLeftAndMadeAgain) {
  { const KernelRecorder left(10, /*of_host=*/true); }
  EXPECT_FALSE(record(1000).trace.spans.empty());
}

}  // namespace
}  // namespace scalemark::kernel_recorder_test
