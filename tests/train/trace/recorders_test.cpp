// What the recorder notes down of real operators: nesting, own time, groups, threads, bounds.
#include "train/trace/recorders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>
#include <thread>

#include "measure/clock.hpp"

namespace scalemark::operator_recorder_test {
namespace {

/// Of all calls of a name in a group; calls 0 where there is none.
OperatorTotal total(const RankTrace& trace, const std::string& name, const std::string& group) {
  for (const OperatorTotal& one : trace.operators)
    if (one.name == name && one.group == group) return one;
  return {};
}

std::vector<Span> spans_of(const RankTrace& trace, const std::string& name) {
  std::vector<Span> spans;
  for (const Span& span : trace.spans)
    if (trace.labels.at(span.label).name == name) spans.push_back(span);
  return spans;
}

RankTrace record(std::size_t most_spans, const std::function<void(OperatorRecorder&)>& body) {
  RankTrace trace;
  OperatorRecorder recorder(most_spans);
  body(recorder);
  recorder.take(trace);
  return trace;
}

void train_a_little() {
  const at::Tensor weight = at::randn({6, 3, 3, 3}).set_requires_grad(true);
  at::conv2d(at::randn({2, 3, 8, 8}), weight).relu().sum().backward();
}

TEST(OperatorRecorder, NotesDownForwardAndBackwardWithShapesAndFlops) {
  const RankTrace trace = record(1000, [](auto&) { train_a_little(); });
  const double once = 2. * (2 * 6 * 6 * 6) * (3 * 3 * 3);
  const auto forward = spans_of(trace, "aten::conv2d");
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(static_cast<double>(forward[0].amount), once);
  const SpanLabel& label = trace.labels.at(forward[0].label);
  EXPECT_EQ(label.category, "operator");
  EXPECT_EQ(label.shapes, "[2, 3, 8, 8], [6, 3, 3, 3]");
  EXPECT_EQ(label.amount, "flops");
  EXPECT_EQ(total(trace, "aten::conv2d", "convolution").flops, once);
  // The inner operators of a counted one are not counted again.
  EXPECT_EQ(total(trace, "aten::convolution", "convolution").flops, 0);
  EXPECT_EQ(total(trace, "aten::convolution_backward", "convolution").flops, once);
  const auto node = spans_of(trace, "ConvolutionBackward0");
  ASSERT_EQ(node.size(), 1u);
  EXPECT_EQ(trace.labels.at(node[0].label).category, "autograd");
  EXPECT_EQ(trace.threads.at(1), "steps");
}

TEST(OperatorRecorder, OwnTimesAreThoseOfTheOutermostTogether) {
  const RankTrace trace = record(1000, [](OperatorRecorder& recorder) {
    EXPECT_EQ(recorder.operator_seconds(), 0);
    train_a_little();
    EXPECT_GT(recorder.operator_seconds(), 0);
  });
  double own = 0, outermost = 0, until = 0;
  for (const OperatorTotal& one : trace.operators) {
    EXPECT_GE(one.self_seconds, 0) << one.name;
    own += one.self_seconds;
  }
  std::vector<Span> spans = trace.spans;
  std::ranges::sort(spans, [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  for (const Span& span : spans) {
    EXPECT_LE(span.begin, span.end);
    if (span.begin < until) {
      EXPECT_LE(span.end, until) << "neither within the one before nor after it";
      continue;
    }
    outermost += span.end - span.begin;
    until = span.end;
  }
  EXPECT_NEAR(own, outermost, 1e-9);
}

TEST(OperatorRecorder, WhatAnOperatorCallsBelongsToItsGroup) {
  const RankTrace trace = record(1000, [](auto&) {
    const at::Tensor weight = at::randn({5, 3});
    at::linear(at::randn({4, 3}), weight, at::randn({5}));  // transposes the weight
    weight.t();
  });
  EXPECT_EQ(total(trace, "aten::t", "matrix_product").calls, 1);
  EXPECT_EQ(total(trace, "aten::t", "other").calls, 1);
}

TEST(OperatorRecorder, TheOptimizersOperatorsAreItsOwnWhateverTheyAre) {
  const at::Tensor a = at::randn({3, 3});
  const RankTrace trace = record(1000, [&](OperatorRecorder& recorder) {
    at::mm(a, a);
    recorder.set_optimizer(true);
    at::mm(a, a);
    recorder.set_optimizer(false);
    at::mm(a, a);
  });
  EXPECT_EQ(total(trace, "aten::mm", "matrix_product").calls, 2);
  EXPECT_EQ(total(trace, "aten::mm", "optimizer").calls, 1);
}

TEST(OperatorRecorder, KeepsSoManySpansAndAllTotals) {
  const at::Tensor a = at::randn({3, 3});
  const auto multiply = [&](auto&) {
    for (int i = 0; i < 100; ++i) at::mm(a, a);
  };
  const RankTrace whole = record(1000, multiply), part = record(10, multiply);
  EXPECT_EQ(whole.dropped_spans, 0);
  EXPECT_EQ(part.spans.size(), 10u);
  EXPECT_EQ(part.dropped_spans, static_cast<std::int64_t>(whole.spans.size()) - 10);
  EXPECT_EQ(total(part, "aten::mm", "matrix_product").calls, 100);
  EXPECT_EQ(total(part, "aten::mm", "matrix_product").flops, 100. * 2 * 27);
}

TEST(OperatorRecorder, EveryThreadHasANumberOfItsOwn) {
  const at::Tensor a = at::randn({3, 3});
  const RankTrace trace = record(1000, [&](auto&) {
    at::mm(a, a);
    std::thread([&] { at::mm(a, a); }).join();
    std::thread([&] { at::mm(a, a); }).join();
  });
  std::set<int> threads;
  for (const Span& span : spans_of(trace, "aten::mm")) threads.insert(span.thread);
  EXPECT_EQ(threads, (std::set{1, 2, 3}));
  for (const int thread : threads) EXPECT_TRUE(trace.threads.contains(thread)) << thread;
  EXPECT_EQ(total(trace, "aten::mm", "matrix_product").calls, 3);
}

TEST(OperatorRecorder, OneAfterTheOtherAndNothingInBetween) {
  const at::Tensor a = at::randn({3, 3});
  for (const int calls : {1, 2}) {
    const RankTrace trace = record(1000, [&](auto&) {
      for (int i = 0; i < calls; ++i) at::mm(a, a);
    });
    EXPECT_EQ(total(trace, "aten::mm", "matrix_product").calls, calls);
    at::mm(a, a);
  }
}

}  // namespace
}  // namespace scalemark::operator_recorder_test

// What Kineto gives, here of the host's operators: names, a thread a stream, the place on this
// machine's clock, bounds. Kernels come the same way.
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
