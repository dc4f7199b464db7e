// Data between real ranks: closed-form sums in every dtype and size, several operations at once,
// and the data check.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "comm/gradient_reducer.hpp"
#include "comm/half.hpp"
#include "comm/mpi_communicator.hpp"
#include "support/mpi_support.hpp"

namespace scalemark::communicator_mpi_test {
namespace {

using testing::world;

constexpr DataType all_types[] = {DataType::f64, DataType::f32, DataType::bf16, DataType::f16,
                                  DataType::i64, DataType::i32, DataType::u8};

/// A buffer of any dtype that is filled and read through doubles.
struct AnyBuffer {
  std::vector<std::uint64_t> storage;
  Buffer buffer;
  AnyBuffer(std::size_t count, DataType type)
      : storage(count * size_of(type) / 8 + 1), buffer{storage.data(), count, type} {}

  template <typename F>
  auto typed(F f) {
    switch (buffer.type) {
      case DataType::f64:
        return f(static_cast<double*>(buffer.data));
      case DataType::f32:
        return f(static_cast<float*>(buffer.data));
      case DataType::i64:
        return f(static_cast<std::int64_t*>(buffer.data));
      case DataType::i32:
        return f(static_cast<std::int32_t*>(buffer.data));
      case DataType::u8:
        return f(static_cast<std::uint8_t*>(buffer.data));
      default:
        return f(static_cast<std::uint16_t*>(buffer.data));
    }
  }
  void set(std::size_t i, int value) {
    typed([&](auto* p) {
      p[i] = static_cast<std::remove_pointer_t<decltype(p)>>(
          buffer.type == DataType::bf16  ? float_to_bf16(static_cast<float>(value))
          : buffer.type == DataType::f16 ? float_to_f16(static_cast<float>(value))
                                         : value);
    });
  }
  double get(std::size_t i) {
    return typed([&](auto* p) {
      const auto bits = static_cast<std::uint16_t>(p[i]);
      return buffer.type == DataType::bf16  ? static_cast<double>(bf16_to_float(bits))
             : buffer.type == DataType::f16 ? static_cast<double>(f16_to_float(bits))
                                            : static_cast<double>(p[i]);
    });
  }
};

// Sum over ranks of (rank + 1) * (i % 13): n (n + 1) / 2 * (i % 13), at most 120, exact in every
// dtype.
void fill(AnyBuffer& any) {
  for (std::size_t i = 0; i < any.buffer.count; ++i)
    any.set(i, (world().rank() + 1) * static_cast<int>(i % 13));
}
void expect_sums(AnyBuffer& any) {
  const int n = world().size();
  int wrong = 0;
  for (std::size_t i = 0; i < any.buffer.count; ++i)
    if (any.get(i) != n * (n + 1) / 2 * static_cast<int>(i % 13)) ++wrong;
  EXPECT_EQ(wrong, 0) << to_string(any.buffer.type) << " x " << any.buffer.count;
}

/// Of every kind that carries host memory.
std::vector<std::unique_ptr<Communicator>> all_communicators() {
  std::vector<std::unique_ptr<Communicator>> made;
  for (const auto name : names_of(CommunicatorKind{})) {
    const auto kind = *from_string<CommunicatorKind>(name);
    if (kind == CommunicatorKind::automatic || kind == CommunicatorKind::nccl) continue;
    made.push_back(make_communicator(kind, world(), -1));
    EXPECT_EQ(made.back()->name(), name);
    EXPECT_EQ(made.back()->size(), world().size());
  }
  return made;
}

TEST(EveryCommunicator, SumsEveryTypeAndSize) {
  int summed = 0;
  for (const auto& communicator : all_communicators()) {
    if (!communicator->moves_data()) continue;
    ++summed;
    for (const auto type : all_types)
      for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 1000u, 8191u, 65537u, 300'007u}) {
        AnyBuffer any(count, type);
        fill(any);
        communicator->allreduce(any.buffer);
        expect_sums(any);
      }
  }
  EXPECT_GE(summed, 1);
}

TEST(MpiCommunicator, SumsABufferLargerThanABucket) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  AnyBuffer any(8'000'003, DataType::f32);
  fill(any);
  communicator->allreduce(any.buffer);
  expect_sums(any);
}

TEST(MpiCommunicator, SplitsWhatIsTooLargeForOneCall) {
  MpiCommunicator communicator(world(), WireDtype::fp32, 1000);
  for (const std::size_t count : {999u, 1000u, 1001u, 12'345u}) {
    AnyBuffer any(count, DataType::bf16);
    fill(any);
    communicator.allreduce(any.buffer);
    expect_sums(any);
  }
}

TEST(MpiCommunicator, CarriesManyOperationsAtOnce) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  std::vector<AnyBuffer> buffers;
  std::vector<std::unique_ptr<Pending>> pending;
  for (int i = 0; i < 40; ++i) {
    buffers.emplace_back(static_cast<std::size_t>(i * i * 100 + 1), all_types[i % 7]);
    buffers.back().buffer.data = buffers.back().storage.data();
    fill(buffers.back());
  }
  for (auto& any : buffers) pending.push_back(communicator->start_allreduce(any.buffer, nullptr));
  world().barrier();  // control passes while data is in flight
  for (std::size_t i = pending.size(); i-- > 0;)
    pending[i]->wait();  // any order of waiting will do
  for (std::size_t i = 0; i < pending.size(); ++i) {
    expect_sums(buffers[i]);
    EXPECT_GT(pending[i]->times()->done, pending[i]->times()->posted);
    EXPECT_NO_THROW(pending[i]->wait());
  }
}

TEST(MpiCommunicator, AnUnreadOperationEndsWithItsHandle) {
  auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  AnyBuffer any(100'000, DataType::f32);
  fill(any);
  communicator->start_allreduce(any.buffer, nullptr).reset();
  communicator.reset();
  expect_sums(any);
}

TEST(MpiCommunicator, WorksInASubgroup) {
  auto group = world().split(world().rank() == 0 ? -1 : 0);
  if (group) {
    const auto communicator = make_communicator(CommunicatorKind::mpi, *group, -1);
    std::vector<float> ones(5000, 1.0f);
    communicator->allreduce({ones.data(), ones.size(), DataType::f32});
    EXPECT_EQ(ones, std::vector<float>(5000, static_cast<float>(world().size() - 1)));
  }
  world().barrier();
}

TEST(MpiCommunicator, SaysWhatCarriesTheBytes) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  EXPECT_NE(communicator->algorithm().find("ring"), std::string::npos) << communicator->algorithm();
  const int n = world().size();
  EXPECT_EQ(communicator->wire_bytes(n * 1'000'000), 2 * (n - 1) * 1'000'000);
}

TEST(MpiCommunicator, AlgorithmIsChosenThroughTheLibrary) {
  if (!testing::is_open_mpi()) GTEST_SKIP() << "Open MPI's own";
  // Not only by the environment: small and large buffers use different algorithms.
  EXPECT_EQ(MpiCommunicator(world()).algorithm(), "ring, recursive doubling below 64 KiB");
}

TEST(NoCommunicator, LeavesTheDataAlone) {
  const auto communicator = make_communicator(CommunicatorKind::none, world(), -1);
  std::vector<float> own(10, static_cast<float>(world().rank()));
  communicator->allreduce({own.data(), own.size(), DataType::f32});
  EXPECT_EQ(own, std::vector<float>(10, static_cast<float>(world().rank())));
  EXPECT_EQ(communicator->wire_bytes(1000), 0);
}

TEST(NcclCommunicator, IsRefusedWithoutAGpu) {
  EXPECT_THROW(make_communicator(CommunicatorKind::nccl, world(), -1), EnvironmentError);
}

TEST(NcclCommunicator, IsRefusedWithA2ByteWireType) {
  if (world().size() == 1) return;  // sends nothing, so the type does not matter
  try {
    make_communicator(CommunicatorKind::nccl, world(), 0, WireDtype::bf16);
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("--wire_dtype fp32"), std::string::npos);
  }
}

TEST(DataCheck, PassesInEveryType) {
  for (const auto& communicator : all_communicators()) {
    std::vector<AnyBuffer> storage;
    std::vector<Buffer> buckets;
    for (const auto type : all_types) storage.emplace_back(10'007, type);
    for (auto& any : storage)
      buckets.push_back({any.storage.data(), any.buffer.count, any.buffer.type});
    EXPECT_NO_THROW(check_allreduce(*communicator, buckets, world().rank(), false));
  }
}

TEST(DataCheck, FindsOneWrongElement) {
  for (const auto& communicator : all_communicators()) {
    for (const auto type : all_types) {
      AnyBuffer any(1001, type);
      const bool corrupt = world().rank() == world().size() - 1;
      try {
        check_allreduce(*communicator, {any.buffer}, world().rank(), corrupt);
        EXPECT_FALSE(corrupt) << to_string(type);
      } catch (const CommError& error) {
        EXPECT_TRUE(corrupt) << error.what();
        EXPECT_NE(std::string(error.what()).find("bucket 0"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("element 500"), std::string::npos) << error.what();
      }
    }
  }
}

/// Sums that are started at moments of each rank's own, in an order that all share.
TEST(UrgentSums, AreRightWheneverARankHasThem) {
  for (const WireDtype wire : {WireDtype::fp32, WireDtype::bf16}) {
    const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1, wire);
    std::minstd_rand delays(static_cast<unsigned>(world().rank()) + 1);
    for (int round = 0; round < 4; ++round) {
      std::vector<AnyBuffer> storage;
      std::vector<std::unique_ptr<Pending>> pending;
      for (const std::size_t count : {0u, 3u, 2'000'000u, 17u, 600'000u, 1u, 100'000u, 5u})
        storage.emplace_back(count, DataType::f32);
      for (std::size_t i = 0; i < storage.size(); ++i) {
        fill(storage[i]);
        std::this_thread::sleep_for(std::chrono::microseconds(delays() % 2000));
        pending.push_back(asynchronous(*communicator)
                              .start_urgent_allreduce(storage[i].buffer,
                                                      static_cast<int>(storage.size() - i),
                                                      nullptr));
      }
      for (std::size_t i = storage.size(); i-- > 0;) pending[i]->wait();
      for (AnyBuffer& any : storage) expect_sums(any);
    }
  }
}

/// The large one has so many pieces that more of them are on their way than of a small one.
TEST(UrgentSums, OvertakeWhatWasStartedBefore) {
  if (world().size() == 1) GTEST_SKIP() << "nothing travels";
  for (const WireDtype wire : {WireDtype::fp32, WireDtype::bf16}) {
    const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1, wire);
    AnyBuffer large(32 << 20, DataType::f32), small(1000, DataType::f32);
    fill(large);
    fill(small);
    const auto first = asynchronous(*communicator).start_urgent_allreduce(large.buffer, 9, nullptr);
    const auto second =
        asynchronous(*communicator).start_urgent_allreduce(small.buffer, 0, nullptr);
    second->wait();
    first->wait();
    expect_sums(small);
    expect_sums(large);
    EXPECT_LT(second->times()->done, first->times()->done);
  }
}

TEST(UrgentSums, MayBeLeftUnread) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  AnyBuffer any(3'000'000, DataType::f32);
  fill(any);
  asynchronous(*communicator).start_urgent_allreduce(any.buffer, 1, nullptr).reset();
  expect_sums(any);
}

TEST(GradientReducer, SumsBucketsOfRealRanks) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  std::vector<AnyBuffer> storage;
  for (const std::size_t count : {500'000u, 3u, 70'000u})
    storage.emplace_back(count, DataType::bf16);
  std::vector<Buffer> buckets;
  for (auto& any : storage) {
    any.buffer.data = any.storage.data();
    buckets.push_back(any.buffer);
  }
  for (const auto overlap : {Overlap::none, Overlap::backward, Overlap::step}) {
    GradientReducer reducer(*communicator, buckets, {1, 1, 1}, overlap, {2, 1, 0});
    for (auto& any : storage) fill(any);
    for (int bucket = 0; bucket < 3; ++bucket) reducer.add(bucket, nullptr);
    reducer.finalize(nullptr);
    for (auto& any : storage) expect_sums(any);
    EXPECT_GT(reducer.log().take().communication_seconds, 0.0);
  }
}

}  // namespace
}  // namespace scalemark::communicator_mpi_test
