// Sums and gathers of GPU memory between real ranks, by NCCL and staged through the host: every
// type, unequal blocks, subgroups, and the order of what is queued.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <numeric>

#include "comm/communicator.hpp"
#include "comm/gradient_reducer.hpp"
#include "tests/comm/cuda/gpu_support.hpp"
#include "tests/support/mpi_support.hpp"

namespace scalemark::testing {
namespace {

/// Carries host buffers over the GPU: copied there, reduced or gathered, copied back.
class OverGpu : public AsynchronousCommunicator {
 public:
  explicit OverGpu(Communicator& inner)
      : AsynchronousCommunicator({inner.name(), inner.size()}), inner_(inner) {}
  std::string algorithm() const override { return inner_.algorithm(); }
  std::string transport() const override { return inner_.transport(); }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return inner_.wire_bytes(bytes); }
  std::unique_ptr<Pending> start_allreduce(const Buffer& host, Stream) override {
    const OnGpu<char> gpu(host.bytes());
    copy(gpu.data(), host.data, host.bytes(), cudaMemcpyHostToDevice);
    inner_.start_allreduce({gpu.data(), host.count, host.type}, stream_)->wait();
    copy(host.data, gpu.data(), host.bytes(), cudaMemcpyDeviceToHost);
    stream_.synchronize();
    return completed_operation();
  }
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                Stream) override {
    const OnGpu<char> sent(all.bytes()), received(mine.bytes());
    copy(sent.data(), all.data, all.bytes(), cudaMemcpyHostToDevice);
    asynchronous(inner_)
        .start_reduce_scatter({sent.data(), all.count, all.type},
                              {received.data(), mine.count, mine.type}, stream_)
        ->wait();
    copy(mine.data, received.data(), mine.bytes(), cudaMemcpyDeviceToHost);
    stream_.synchronize();
    return completed_operation();
  }
  std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                           const std::vector<std::size_t>& counts,
                                           Stream) override {
    const OnGpu<char> sent(mine.bytes() + 1), received(all.bytes());  // a block may be empty
    copy(sent.data(), mine.data, mine.bytes(), cudaMemcpyHostToDevice);
    asynchronous(inner_)
        .start_allgather({sent.data(), mine.count, mine.type},
                         {received.data(), all.count, all.type}, counts, stream_)
        ->wait();
    copy(all.data, received.data(), all.bytes(), cudaMemcpyDeviceToHost);
    stream_.synchronize();
    return completed_operation();
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
  }
  Communicator& inner_;
  GpuStream stream_;
};

class GpuRanks : public ::testing::TestWithParam<CommunicatorKind> {
 protected:
  void SetUp() override {
    gpu_ = gpu_of(world());
    if (gpu_ < 0) GTEST_SKIP() << "no GPU";
    communicator_ = make_communicator(GetParam(), world(), gpu_);
  }

  /// What every element is on `rank`, and their sum over ranks.
  static float value(int rank) { return static_cast<float>(1 + rank); }
  static float sum() { return static_cast<float>(world().size() * (world().size() + 1)) / 2; }

  int gpu_ = -1;
  std::unique_ptr<Communicator> communicator_;
};

std::string name_of(const ::testing::TestParamInfo<CommunicatorKind>& kind) {
  return kind.param == CommunicatorKind::nccl ? "nccl" : "staged";
}
INSTANTIATE_TEST_SUITE_P(Kinds, GpuRanks,
                         ::testing::Values(CommunicatorKind::nccl, CommunicatorKind::mpi), name_of);

TEST_P(GpuRanks, EveryTypeIsSummed) {
  OverGpu over(*communicator_);
  for (const DataType type : {DataType::f64, DataType::f32, DataType::bf16, DataType::f16,
                              DataType::i64, DataType::i32, DataType::u8})
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300'007}}) {
      std::vector<char> host(count * size_of(type));
      EXPECT_NO_THROW(
          check_allreduce(over, {{host.data(), count, type}}, world().rank(), /*corrupt=*/false))
          << to_string(type) << " " << count;
    }
}

TEST_P(GpuRanks, AWrongElementIsFound) {
  OverGpu over(*communicator_);
  std::vector<float> host(1000);
  const bool corrupt = world().rank() == 0;
  const std::vector<Buffer> buckets{{host.data(), host.size(), DataType::f32}};
  if (corrupt) {
    EXPECT_THROW(check_allreduce(over, buckets, world().rank(), corrupt), CommError);
  } else {
    EXPECT_NO_THROW(check_allreduce(over, buckets, world().rank(), corrupt));
  }
}

TEST_P(GpuRanks, BlocksAreGatheredEqualOrNot) {
  OverGpu over(*communicator_);
  const auto ranks = static_cast<std::size_t>(world().size());
  struct Blocks {
    std::size_t last, differ;  ///< elements of the last rank; how many more each has before it
  };
  for (const auto& [last, differ] : {Blocks{100'003, 0}, {10, 77'777}, {0, 1'000}})
    for (const DataType type : {DataType::f32, DataType::i64, DataType::u8}) {
      std::vector<std::size_t> counts;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        counts.push_back(last + differ * (ranks - 1 - rank));
      const std::size_t own = counts[static_cast<std::size_t>(world().rank())];
      const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      if (total == 0) continue;
      std::vector<char> mine(own * size_of(type) + 1), all(total * size_of(type));
      EXPECT_NO_THROW(check_allgather(over, {mine.data(), own, type}, {all.data(), total, type},
                                      counts, world().rank(), /*corrupt=*/false))
          << to_string(type) << " " << differ;
    }
}

TEST_P(GpuRanks, EveryRankGetsTheSumsOfItsBlock) {
  OverGpu over(*communicator_);
  for (const std::size_t own : {1, 1'000, 300'007}) {
    std::vector<float> mine(own), all(own * static_cast<std::size_t>(world().size()));
    EXPECT_NO_THROW(check_reduce_scatter(over, {all.data(), all.size(), DataType::f32},
                                         {mine.data(), own, DataType::f32}, world().rank(),
                                         /*corrupt=*/false))
        << own;
  }
}

/// The stream is held back before the values are written, so that a sum which does not wait for
/// them would be of NaN, or of what was there before; and read behind the sum.
TEST_P(GpuRanks, ASumWaitsForTheStreamAndTheStreamForTheSum) {
  const GpuStream stream;
  const OnGpu<float> gpu(200'003);
  const std::vector<float> nothing(gpu.count(), -1), values(gpu.count(), value(world().rank()));
  std::vector<float> found(gpu.count());
  gpu.put(nothing, stream);
  stream.synchronize();
  std::promise<void> opened;
  std::shared_future<void> gate(opened.get_future());
  check_cuda(
      cudaLaunchHostFunc(
          stream, [](void* data) { static_cast<std::shared_future<void>*>(data)->wait(); }, &gate),
      "cudaLaunchHostFunc");
  gpu.put(values, stream);
  const auto pending =
      communicator_->start_allreduce({gpu.data(), gpu.count(), DataType::f32}, stream);
  opened.set_value();  // staged, wait() itself waits for the values
  pending->wait();
  gpu.get(found, stream);
  stream.synchronize();
  EXPECT_THAT(found, ::testing::Each(sum()));
}

/// Each sum reads what the one before left, and several are on their way at once: events and pinned
/// memory are used again as soon as they are free, and not before.
TEST_P(GpuRanks, ManySumsInARowAreInOrder) {
  const GpuStream stream;
  const OnGpu<double> first(5'001), second(70'001);
  std::vector<double> found_first(first.count()), found_second(second.count());
  const auto ranks = static_cast<double>(world().size());
  const std::vector<double> ones(first.count(), 1), threes(second.count(), 3);
  first.put(ones, stream);
  second.put(threes, stream);
  double factor = 1;
  for (int step = 0; step < 12; ++step, factor *= ranks) {
    asynchronous(*communicator_).begin_step(stream);
    const auto a =
        communicator_->start_allreduce({first.data(), first.count(), DataType::f64}, stream);
    const auto b =
        communicator_->start_allreduce({second.data(), second.count(), DataType::f64}, stream);
    a->wait();
    b->wait();
  }
  first.get(found_first, stream);
  second.get(found_second, stream);
  stream.synchronize();
  EXPECT_THAT(found_first, ::testing::Each(factor));
  EXPECT_THAT(found_second, ::testing::Each(3 * factor));
}

/// With --cuda_graph, NCCL's operations are recorded with the step that they belong to. In between
/// others are queued one by one, as by a data check.
TEST_P(GpuRanks, RecordedSumsAreRepeated) {
  if (GetParam() != CommunicatorKind::nccl) GTEST_SKIP() << "the host takes part in staged ones";
  const GpuStream stream;
  const OnGpu<float> first(5'001), second(70'001);
  GradientReducer reducer(*communicator_,
                          {{first.data(), first.count(), DataType::f32},
                           {second.data(), second.count(), DataType::f32}},
                          {1, 1}, Overlap::backward);
  const auto sum_both = [&] {
    reducer.begin_step(stream);
    reducer.add(0, stream);
    reducer.add(1, stream);
    reducer.finalize(stream);
  };
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin");
  sum_both();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t repeated = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "end");
  check_cuda(cudaGraphInstantiate(&repeated, graph, 0), "instantiate");
  std::vector<float> found_first(first.count()), found_second(second.count());
  for (int step = 0; step < 4; ++step) {
    const auto scale = static_cast<float>(step + 1);
    const std::vector<float> some(first.count(), scale * value(world().rank())),
        others(second.count(), 2 * scale * value(world().rank()));
    first.put(some, stream);
    second.put(others, stream);
    if (step % 2 == 0)
      check_cuda(cudaGraphLaunch(repeated, stream), "launch");
    else
      sum_both();
    first.get(found_first, stream);
    second.get(found_second, stream);
    stream.synchronize();
    EXPECT_THAT(found_first, ::testing::Each(scale * sum())) << step;
    EXPECT_THAT(found_second, ::testing::Each(2 * scale * sum())) << step;
  }
  EXPECT_EQ(reducer.log().take().wait_seconds.size(), 1u + 2u);  // the recording is one of them
  cudaGraphExecDestroy(repeated);
  cudaGraphDestroy(graph);
}

TEST_P(GpuRanks, PartsOfTheWorldHaveTheirOwn) {
  auto part = world().split(world().rank() % 2);
  const auto own = make_communicator(GetParam(), *part, gpu_);
  OverGpu over(*own);
  std::vector<float> host(1'003);
  EXPECT_NO_THROW(
      check_allreduce(over, {{host.data(), host.size(), DataType::f32}}, part->rank(), false));
  OverGpu over_all(*communicator_);  // and that of the world goes on
  EXPECT_NO_THROW(check_allreduce(over_all, {{host.data(), host.size(), DataType::f32}},
                                  world().rank(), false));
}

TEST_P(GpuRanks, SaysWhatCarriesTheBytes) {
  OverGpu over(*communicator_);
  std::vector<float> host(10);
  check_allreduce(over, {{host.data(), host.size(), DataType::f32}}, world().rank(), false);
  const std::string transport = communicator_->transport();
  if (GetParam() == CommunicatorKind::mpi) {
    EXPECT_THAT(transport, ::testing::HasSubstr("pinned host memory"));
  } else if (world().size() > 1) {  // one rank has no channels
    EXPECT_NE(transport, "");
  }
}

}  // namespace
}  // namespace scalemark::testing
