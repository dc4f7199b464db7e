// When operations on a GPU began and ended: known late, in order, and asking leaves no error
// behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "comm/communicator.hpp"
#include "tests/comm/cuda/gpu_support.hpp"
#include "tests/support/mpi_support.hpp"

namespace scalemark::testing {
namespace {

class GpuTimes : public ::testing::TestWithParam<CommunicatorKind> {
 protected:
  void SetUp() override {
    const int gpu = gpu_of(world());
    if (gpu < 0) GTEST_SKIP() << "no GPU";
    communicator_ = make_communicator(GetParam(), world(), gpu);
    buffer_ = std::make_unique<OnGpu<float>>(10'000);
    stream_ = std::make_unique<GpuStream>();
  }
  std::unique_ptr<Pending> sum() {
    return communicator_->start_allreduce({buffer_->data(), buffer_->count(), DataType::f32},
                                          static_cast<cudaStream_t>(*stream_));
  }
  void begin_step() {
    asynchronous(*communicator_).begin_step(static_cast<cudaStream_t>(*stream_));
  }

  std::unique_ptr<OnGpu<float>> buffer_;
  std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<Communicator> communicator_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, GpuTimes,
                         ::testing::Values(CommunicatorKind::nccl, CommunicatorKind::mpi),
                         [](const auto& kind) {
                           return kind.param == CommunicatorKind::nccl ? "nccl" : "staged";
                         });

void expect_in_order(const OperationTimes& times) {
  EXPECT_GE(times.posted, 0);
  EXPECT_GE(times.done, times.posted);
  EXPECT_GE(times.wait_begin, times.posted);
  EXPECT_GE(times.wait_end, times.wait_begin);
  EXPECT_GE(times.wait_end, times.done);
}

TEST_P(GpuTimes, AreNotThereUnlessAskedFor) {
  const auto operation = sum();
  operation->wait();
  stream_->synchronize();
  EXPECT_EQ(operation->times(), std::nullopt);
}

/// LibTorch asks for the last error behind every kernel that it starts: "not ready" must not be it.
TEST_P(GpuTimes, AreKnownOnceTheStreamHasPassed) {
  begin_step();
  const auto operation = sum();
  operation->wait();
  std::promise<void> opened;
  std::shared_future<void> gate(opened.get_future());
  // Of a stream that is held back, nothing can be known.
  begin_step();
  check_cuda(cudaLaunchHostFunc(
                 *stream_, [](void* data) { static_cast<std::shared_future<void>*>(data)->wait(); },
                 &gate),
             "cudaLaunchHostFunc");
  const auto held = sum();
  EXPECT_EQ(held->times(), std::nullopt);
  if (GetParam() == CommunicatorKind::nccl) {  // staged, wait() waits for the stream
    held->wait();
    EXPECT_EQ(held->times(), std::nullopt);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  opened.set_value();
  if (GetParam() != CommunicatorKind::nccl) held->wait();
  stream_->synchronize();
  for (const auto* one : {&operation, &held}) {
    const auto times = (*one)->times();
    ASSERT_TRUE(times);
    expect_in_order(*times);
  }
}

/// Read a step late, as training does: marks that are still held are not used again.
TEST_P(GpuTimes, StayThoseOfTheirOperation) {
  std::vector<std::unique_ptr<Pending>> before;
  std::vector<OperationTimes> read_at_once;
  for (int step = 0; step < 10; ++step) {
    begin_step();
    std::vector<std::unique_ptr<Pending>> now;
    for (int i = 0; i < 3; ++i) now.push_back(sum());
    for (const auto& operation : now) operation->wait();
    stream_->synchronize();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto times = before[i]->times();
      ASSERT_TRUE(times);
      EXPECT_EQ(times->posted, read_at_once[i].posted);
      EXPECT_EQ(times->done, read_at_once[i].done);
      EXPECT_EQ(times->wait_end, read_at_once[i].wait_end);
    }
    read_at_once.clear();
    for (const auto& operation : now) {
      read_at_once.push_back(operation->times().value());
      expect_in_order(read_at_once.back());
    }
    // One stream does them one behind the other.
    EXPECT_LE(read_at_once[0].done, read_at_once[1].done);
    EXPECT_LE(read_at_once[1].done, read_at_once[2].done);
    before = std::move(now);
  }
}

}  // namespace
}  // namespace scalemark::testing
