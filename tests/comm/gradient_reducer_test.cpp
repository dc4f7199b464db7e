// The reducer's order and refusals, seen by a communicator that records what is asked of it.
#include "comm/gradient_reducer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "error.hpp"

namespace scalemark::gradient_reducer_test {
namespace {

/// Doubles the data on wait(), as two equal ranks would, and writes down every call.
class RecordingCommunicator : public AsynchronousCommunicator {
 public:
  explicit RecordingCommunicator(WireDtype wire = WireDtype::fp32)
      : AsynchronousCommunicator({"recording", 2, wire}) {}
  std::vector<std::string> calls;

  std::string algorithm() const override { return "doubling"; }
  std::string transport() const override { return ""; }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return bytes + 1; }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream) override {
    calls.push_back("start " + std::to_string(buffer.count));
    return std::make_unique<Sum>(*this, buffer);
  }
  std::unique_ptr<Pending> start_urgent_allreduce(const Buffer& buffer, int urgency,
                                                  Stream stream) override {
    calls.push_back("urgency " + std::to_string(urgency));
    return start_allreduce(buffer, stream);
  }
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer&, const Buffer&, Stream) override {
    calls.push_back("scatter");
    return completed_operation();
  }
  std::unique_ptr<Pending> start_allgather(const Buffer&, const Buffer&,
                                           const std::vector<std::size_t>&, Stream) override {
    calls.push_back("gather");
    return completed_operation();
  }

 private:
  class Sum : public Pending {
   public:
    Sum(RecordingCommunicator& owner, const Buffer& buffer) : owner_(owner), buffer_(buffer) {}
    void wait() override {
      owner_.calls.push_back("wait " + std::to_string(buffer_.count));
      for (std::size_t i = 0; i < buffer_.count; ++i) static_cast<float*>(buffer_.data)[i] *= 2;
    }
    std::optional<OperationTimes> times() override { return OperationTimes{1, 1.25, 1, 1.125}; }

   private:
    RecordingCommunicator& owner_;
    Buffer buffer_;
  };
};

class Reducer : public ::testing::Test {
 protected:
  RecordingCommunicator communicator;
  std::vector<float> a = {1}, b = {2, 2}, c = {3, 3, 3};
  std::vector<Buffer> buckets{
      {a.data(), 1, DataType::f32}, {b.data(), 2, DataType::f32}, {c.data(), 3, DataType::f32}};
  using Calls = std::vector<std::string>;
};

TEST_F(Reducer, StartsABucketWhenItAndAllBeforeItAreFull) {
  GradientReducer reducer(communicator, buckets, {2, 1, 1}, Overlap::backward);
  reducer.add(1, nullptr);
  reducer.add(0, nullptr);
  EXPECT_EQ(communicator.calls, Calls{});  // bucket 1 is full, but bucket 0 is not
  reducer.add(0, nullptr);
  EXPECT_EQ(communicator.calls, (Calls{"start 1", "start 2"}));
  reducer.add(2, nullptr);
  reducer.finalize(nullptr);
  EXPECT_EQ(communicator.calls,
            (Calls{"start 1", "start 2", "start 3", "wait 1", "wait 2", "wait 3"}));
  EXPECT_EQ(a[0], 2);
  EXPECT_EQ(c[2], 6);
}

TEST_F(Reducer, WithoutOverlapStartsEverythingAtTheEnd) {
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::none);
  for (int bucket : {2, 0, 1}) reducer.add(bucket, nullptr);
  EXPECT_EQ(communicator.calls, Calls{});
  reducer.finalize(nullptr);
  EXPECT_EQ(communicator.calls,
            (Calls{"start 1", "start 2", "start 3", "wait 1", "wait 2", "wait 3"}));
}

TEST_F(Reducer, TellsOfEachSumBeforeItWaitsForTheNext) {
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::backward);
  for (int bucket : {0, 1, 2}) reducer.add(bucket, nullptr);
  reducer.finalize(nullptr, [&](std::size_t bucket) {
    communicator.calls.push_back("sum of " + std::to_string(bucket));
  });
  EXPECT_EQ(communicator.calls, (Calls{"start 1", "start 2", "start 3", "wait 1", "sum of 0",
                                       "wait 2", "sum of 1", "wait 3", "sum of 2"}));
}

TEST_F(Reducer, IsReadyForTheNextStep) {
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::backward);
  for (int step = 0; step < 3; ++step) {
    for (int bucket : {0, 1, 2}) reducer.add(bucket, nullptr);
    reducer.finalize(nullptr);
  }
  EXPECT_EQ(communicator.calls.size(), 18u);
  EXPECT_EQ(a[0], 8);
}

TEST_F(Reducer, LeavesSumsToTheNextStep) {
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::step, {7, 5, 6});
  for (int bucket : {0, 1}) reducer.add(bucket, nullptr);
  EXPECT_EQ(communicator.calls, (Calls{"urgency 7", "start 1", "urgency 5", "start 2"}));
  EXPECT_THROW(reducer.start_rest(nullptr), CommError);  // bucket 2 lacks its gradient
  reducer.add(2, nullptr);
  reducer.start_rest(nullptr);
  reducer.end_step();
  communicator.calls.clear();
  reducer.wait(1);
  reducer.wait(1);
  reducer.wait(2);
  EXPECT_EQ(communicator.calls, (Calls{"wait 2", "wait 3"}));
  EXPECT_THROW(reducer.add(0, nullptr), CommError);  // its sum has not been waited for
  EXPECT_EQ(reducer.log().take().wait_seconds.size(), 1u);
  EXPECT_THROW(GradientReducer(communicator, buckets, {1, 1, 1}, Overlap::step, {1}), CommError);
}

TEST_F(Reducer, RefusesABucketThatIsNotFull) {
  GradientReducer reducer(communicator, buckets, {1, 3, 1}, Overlap::backward);
  for (int bucket : {0, 1, 2}) reducer.add(bucket, nullptr);
  try {
    reducer.finalize(nullptr);
    FAIL();
  } catch (const CommError& error) {
    EXPECT_STREQ(error.what(), "bucket 1 lacks 2 of its 3 gradients at the end of the step");
  }
}

TEST_F(Reducer, RefusesTooManyGradientsAndUnknownBuckets) {
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::none);
  reducer.add(0, nullptr);
  EXPECT_THROW(reducer.add(0, nullptr), CommError);
  EXPECT_THROW(reducer.add(3, nullptr), CommError);
  EXPECT_THROW(reducer.add(-1, nullptr), CommError);
  EXPECT_THROW(GradientReducer(communicator, buckets, {1, 1}, Overlap::none), CommError);
}

TEST_F(Reducer, CountsBytesAndMessages) {
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::none);
  EXPECT_EQ(reducer.bytes_per_step(), 24);
  EXPECT_EQ(reducer.wire_bytes_per_step(), 24 + 3);
  EXPECT_EQ(reducer.messages_per_step(), 3);
  for (int bucket : {0, 1, 2}) reducer.add(bucket, nullptr);
  reducer.finalize(nullptr);
  const CommunicationTimes times = reducer.log().take();
  EXPECT_EQ(times.wait_seconds, std::vector{3 * 0.125});
  EXPECT_EQ(times.communication_seconds, 0.25);
}

TEST_F(Reducer, CountsBytesInTheWireType) {
  RecordingCommunicator halving(WireDtype::bf16);
  std::vector<double> d(5);
  buckets.push_back({d.data(), 5, DataType::f64});  // travels as it is
  const GradientReducer reducer(halving, buckets, {1, 1, 1, 1}, Overlap::none);
  EXPECT_EQ(reducer.bytes_per_step(), 12 + 40);
  EXPECT_EQ(reducer.wire_bytes_per_step(), 12 + 40 + 4);
}

/// A communicator of the plain kind, as `none` and c10d's are.
class PlainCommunicator : public Communicator {
 public:
  PlainCommunicator() : Communicator({.name = "plain", .size = 2}) {}
  std::string algorithm() const override { return ""; }
  std::string transport() const override { return ""; }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return bytes; }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream) override {
    started.push_back(buffer.count);
    return completed_operation();
  }
  std::vector<std::size_t> started;
};

TEST_F(Reducer, APlainCommunicatorSumsInTheOrderOfTheStarts) {
  PlainCommunicator plain;
  GradientReducer reducer(plain, buckets, {1, 1, 1}, Overlap::step, {7, 5, 6});
  reducer.begin_step(nullptr);
  for (int bucket : {0, 1, 2}) reducer.add(bucket, nullptr);
  reducer.finalize(nullptr);
  EXPECT_EQ(plain.started, (std::vector<std::size_t>{1, 2, 3}));
}

TEST_F(Reducer, OnlyAnAsynchronousCommunicatorGathers) {
  EXPECT_EQ(&asynchronous(communicator), &communicator);
  PlainCommunicator plain;
  try {
    asynchronous(plain);
    FAIL();
  } catch (const CommError& error) {
    EXPECT_STREQ(error.what(),
                 "communicator plain has no allgather; use --communicator mpi or nccl");
  }
}

TEST(Communicators, ResolveAutoByDeviceAndRanks) {
  EXPECT_EQ(resolve_communicator(CommunicatorKind::automatic, false, 1), CommunicatorKind::none);
  EXPECT_EQ(resolve_communicator(CommunicatorKind::automatic, true, 1), CommunicatorKind::none);
  EXPECT_EQ(resolve_communicator(CommunicatorKind::automatic, false, 2), CommunicatorKind::mpi);
  EXPECT_EQ(resolve_communicator(CommunicatorKind::automatic, true, 2), CommunicatorKind::nccl);
  EXPECT_EQ(resolve_communicator(CommunicatorKind::mpi, true, 1), CommunicatorKind::mpi);
}

TEST(DataTypes, HaveSizesAndNames) {
  EXPECT_EQ(size_of(DataType::f64), 8u);
  EXPECT_EQ(size_of(DataType::bf16), 2u);
  EXPECT_EQ(size_of(DataType::u8), 1u);
  EXPECT_EQ(to_string(DataType::bf16), "bf16");
}

TEST(Errors, MostSevereFollowsThePrecedence) {
  // 7, 2, 5, 4, 6, then the others.
  const std::vector<ExitCode> order{ExitCode::environment, ExitCode::usage,  ExitCode::timeout,
                                    ExitCode::failed,      ExitCode::result, ExitCode::ok};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = i; j < order.size(); ++j) {
      EXPECT_EQ(most_severe(order[i], order[j]), order[i]);
      EXPECT_EQ(most_severe(order[j], order[i]), order[i]);
    }
}

TEST_F(Reducer, ABucketWithoutElementsIsCountedButNotSent) {
  buckets[1].count = 0;
  GradientReducer reducer(communicator, buckets, {1, 1, 1}, Overlap::backward);
  reducer.add(0, nullptr);
  reducer.add(2, nullptr);
  EXPECT_EQ(communicator.calls, (Calls{"start 1"}));  // the third waits for the second
  reducer.add(1, nullptr);
  EXPECT_EQ(communicator.calls, (Calls{"start 1", "start 3"}));
  std::vector<std::size_t> summed;
  reducer.finalize(nullptr, [&](std::size_t bucket) { summed.push_back(bucket); });
  EXPECT_EQ(summed, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(reducer.messages_per_step(), 2);
  EXPECT_EQ(reducer.bytes_per_step(), 16);
  EXPECT_EQ(reducer.log().take().wait_seconds, std::vector{2 * 0.125});
  EXPECT_EQ(b, (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace scalemark::gradient_reducer_test
