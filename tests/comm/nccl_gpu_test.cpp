// NCCL and staged communication of one rank: stream order, start-up and shut-down. Several ranks:
// cuda/.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/nccl_factory.hpp"

namespace scalemark::nccl_gpu_test {
namespace {

class Nccl : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return;
    watchdog = std::make_unique<Watchdog>(60);
    world = std::make_unique<RankGroup>(RankGroup::world(*watchdog));
  }
  static void TearDownTestSuite() {
    if (world) RankGroup::finalize(*world);
    world.reset();
    watchdog.reset();
  }
  void SetUp() override {
    if (!world) GTEST_SKIP() << "no GPU";
  }

  /// Sums a buffer over one rank, several times in a row, and reads it back.
  static void expect_unchanged(Communicator& communicator) {
    const std::vector<float> values(1'000'003, 1.5f);
    std::vector<float> found(values.size());
    const std::size_t bytes = values.size() * sizeof(float);
    void* data = nullptr;
    ASSERT_EQ(cudaMalloc(&data, bytes), cudaSuccess);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (int i = 0; i < 20; ++i) {
      // Queued, not waited for: the sum must come after the copy, and the copy back after the sum.
      cudaMemcpyAsync(data, values.data(), bytes, cudaMemcpyHostToDevice, stream);
      const auto pending =
          communicator.start_allreduce({data, values.size(), DataType::f32}, stream);
      pending->wait();
      cudaMemcpyAsync(found.data(), data, bytes, cudaMemcpyDeviceToHost, stream);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      ASSERT_EQ(found, values);
    }
    cudaStreamDestroy(stream);
    cudaFree(data);
  }

  /// Gathers a block of one rank, several times in a row, each as long as the one before or longer.
  static void expect_gathered(Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (const std::size_t count : {std::size_t{1000}, std::size_t{1000}, std::size_t{300'007}}) {
      const std::vector<std::int64_t> values(count, 77);
      std::vector<std::int64_t> found(count);
      const std::size_t bytes = count * sizeof(std::int64_t);
      void *mine = nullptr, *all = nullptr;
      ASSERT_EQ(cudaMalloc(&mine, bytes), cudaSuccess);
      ASSERT_EQ(cudaMalloc(&all, bytes), cudaSuccess);
      cudaMemcpyAsync(mine, values.data(), bytes, cudaMemcpyHostToDevice, stream);
      asynchronous(communicator)
          .start_allgather({mine, count, DataType::i64}, {all, count, DataType::i64}, {count},
                           stream)
          ->wait();
      cudaMemcpyAsync(found.data(), all, bytes, cudaMemcpyDeviceToHost, stream);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      ASSERT_EQ(found, values);
      cudaFree(mine);
      cudaFree(all);
    }
    cudaStreamDestroy(stream);
  }

  static inline std::unique_ptr<Watchdog> watchdog;
  static inline std::unique_ptr<RankGroup> world;
};

TEST_F(Nccl, SumsOverOneRankInStreamOrder) {
  const auto communicator = make_communicator(CommunicatorKind::nccl, *world, 0);
  EXPECT_EQ(communicator->name(), "nccl");
  EXPECT_EQ(communicator->wire_bytes(1000), 0);
  expect_unchanged(*communicator);
}

TEST_F(Nccl, GathersInStreamOrder) {
  expect_gathered(*make_communicator(CommunicatorKind::nccl, *world, 0));
  expect_gathered(*make_communicator(CommunicatorKind::mpi, *world, 0));
}

TEST_F(Nccl, CanBeMadeAgain) {
  for (int i = 0; i < 2; ++i)
    expect_unchanged(*make_communicator(CommunicatorKind::nccl, *world, 0));
}

TEST_F(Nccl, MpiStagesThroughTheHost) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, *world, 0);
  EXPECT_NE(communicator->transport().find("pinned host memory"), std::string::npos);
  expect_unchanged(*communicator);
}

TEST_F(Nccl, SaysItsVersion) { EXPECT_EQ(nccl_version().find("2."), 0u); }

}  // namespace
}  // namespace scalemark::nccl_gpu_test
