// Sums of fp32 values with a 2-byte wire type between real ranks: every bit of the result, its
// error against the exact sum, bytes, and operations in flight.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "comm/gradient_reducer.hpp"
#include "comm/half.hpp"
#include "comm/mpi_communicator.hpp"
#include "support/mpi_support.hpp"

namespace scalemark::wire_sum_mpi_test {
namespace {

using testing::world;

constexpr WireDtype wire_types[] = {WireDtype::bf16, WireDtype::fp16};
constexpr float infinity = std::numeric_limits<float>::infinity();

float through(WireDtype wire, float value) {
  return wire == WireDtype::bf16 ? bf16_to_float(float_to_bf16(value))
                                 : f16_to_float(float_to_f16(value));
}

/// What `rank` contributes: both signs, full mantissas, magnitudes from 2^-20 to 4.
float value_of(int rank, std::size_t i) {
  const auto mixed = (static_cast<std::uint32_t>(i) + 977u * static_cast<std::uint32_t>(rank + 1)) *
                     2'654'435'761u;
  const float fraction = static_cast<float>(mixed >> 8) * 0x1p-23f - 1;
  return std::ldexp(fraction, static_cast<int>(i % 23) - 20);
}

std::vector<float> own_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(world().rank(), i);
  return values;
}

/// The definition: every value rounded, summed in fp32 in rank order, the sum rounded.
float expected(WireDtype wire, std::size_t i) {
  if (world().size() == 1) return value_of(0, i);
  float sum = through(wire, value_of(0, i));
  for (int rank = 1; rank < world().size(); ++rank) sum += through(wire, value_of(rank, i));
  return through(wire, sum);
}

void expect_every_bit(WireDtype wire, const std::vector<float>& found) {
  int wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    wrong +=
        std::bit_cast<std::uint32_t>(found[i]) != std::bit_cast<std::uint32_t>(expected(wire, i));
  EXPECT_EQ(wrong, 0) << found.size() << " elements";
}

Buffer buffer_of(std::vector<float>& values) {
  return {values.data(), values.size(), DataType::f32};
}

std::unique_ptr<Communicator> mpi(WireDtype wire) {
  return make_communicator(CommunicatorKind::mpi, world(), -1, wire);
}

/// The part of expect_every_bit() that this rank has after a reduce-scatter; fp32 values are summed
/// in rank order.
void expect_own_block(WireDtype wire, const std::vector<float>& found) {
  int wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t place = static_cast<std::size_t>(world().rank()) * found.size() + i;
    float sum = value_of(0, place);
    for (int rank = 1; rank < world().size(); ++rank) sum += value_of(rank, place);
    const float right = wire == WireDtype::fp32 ? sum : expected(wire, place);
    wrong += std::bit_cast<std::uint32_t>(found[i]) != std::bit_cast<std::uint32_t>(right);
  }
  EXPECT_EQ(wrong, 0) << to_string(wire) << " " << found.size() << " elements";
}

TEST(ReduceScatter, GivesEveryRankTheBitsOfItsBlock) {
  for (const auto wire : {WireDtype::fp32, WireDtype::bf16, WireDtype::fp16}) {
    const auto communicator = mpi(wire);
    for (const std::size_t own : {0u, 1u, 13u, 2048u, 8191u, 100'003u, 3'000'011u}) {
      auto values = own_values(own * static_cast<std::size_t>(world().size()));
      std::vector<float> sums(own, infinity);
      asynchronous(*communicator)
          .start_reduce_scatter(buffer_of(values), buffer_of(sums), nullptr)
          ->wait();
      expect_own_block(wire, sums);
    }
  }
}

TEST(ReduceScatter, SeveralAndGathersMayBeInFlight) {
  const auto communicator = mpi(WireDtype::bf16);
  const auto p = static_cast<std::size_t>(world().size());
  constexpr std::size_t kOwn = 700'001;
  std::vector<std::vector<float>> values(4, own_values(kOwn * p)),
      sums(4, std::vector<float>(kOwn));
  std::vector<float> gathered(kOwn * p);
  std::copy_n(own_values(kOwn).begin(), kOwn,
              gathered.begin() + static_cast<std::ptrdiff_t>(kOwn) * world().rank());
  std::vector<std::unique_ptr<Pending>> pending;
  for (std::size_t i = 0; i < 4; ++i)
    pending.push_back(asynchronous(*communicator)
                          .start_reduce_scatter(buffer_of(values[i]), buffer_of(sums[i]), nullptr));
  const Buffer in_place{gathered.data() + kOwn * static_cast<std::size_t>(world().rank()), kOwn,
                        DataType::f32};
  pending.push_back(asynchronous(*communicator)
                        .start_allgather(in_place, buffer_of(gathered),
                                         std::vector<std::size_t>(p, kOwn), nullptr));
  for (const auto& one : pending) one->wait();
  for (const auto& sum : sums) expect_own_block(WireDtype::bf16, sum);
  for (std::size_t i = 0; i < gathered.size(); ++i)
    ASSERT_EQ(gathered[i], value_of(static_cast<int>(i / kOwn), i % kOwn)) << i;
}

TEST(ReduceScatter, TheDataCheckFindsAWrongElement) {
  const auto communicator = mpi(WireDtype::bf16);
  std::vector<float> mine(1000), all(mine.size() * static_cast<std::size_t>(world().size()));
  check_reduce_scatter(*communicator, buffer_of(all), buffer_of(mine), world().rank(), false);
  EXPECT_THROW(
      check_reduce_scatter(*communicator, buffer_of(all), buffer_of(mine), world().rank(), true),
      CommError);
}

/// The data check of a group of ranks and its replicas.
void check_groups(Communicator& communicator, bool corrupt) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<float> mine(1000), all(mine.size() * ranks);
  check_reduce_scatter(communicator, buffer_of(all), buffer_of(mine), world().rank(), corrupt);
  check_allgather(communicator, buffer_of(mine), buffer_of(all),
                  std::vector<std::size_t>(ranks, mine.size()), world().rank(), false);
}

TEST(ReduceScatter, TheDataCheckCoversGroupsAndWhatIsBetweenThem) {
  constexpr auto kMpi = CommunicatorKind::mpi;
  for (int ranks = 1; ranks <= world().size(); ++ranks) {
    if (world().size() % ranks != 0) continue;
    for (const auto wire : {WireDtype::fp32, WireDtype::bf16}) {
      const auto groups = make_shard_communicator(kMpi, world(), -1, wire, ranks);
      const bool several = ranks > 1 && ranks < world().size();
      ASSERT_EQ(groups->replicas() != nullptr, several);
      EXPECT_EQ(groups->size(), several ? ranks : world().size());
      check_groups(*groups, false);
      EXPECT_THROW(check_groups(*groups, true), CommError);
      if (!several) continue;
      EXPECT_EQ(groups->replicas()->size(), world().size() / ranks);
      groups->set_replicas(make_communicator(kMpi, world(), -1, wire));  // other ranks' blocks too
      EXPECT_THROW(check_groups(*groups, false), CommError);
    }
  }
}

TEST(ReduceScatter, BlocksThatDoNotFitAreRefused) {
  const auto communicator = mpi(WireDtype::fp32);
  std::vector<float> mine(10), all(10 * static_cast<std::size_t>(world().size()) + 1);
  EXPECT_THROW(
      asynchronous(*communicator).start_reduce_scatter(buffer_of(all), buffer_of(mine), nullptr),
      CommError);
}

// All ranks compare with the same values, so equal bits on all ranks are part of it.
TEST(WireSum, HasTheBitsOfItsDefinition) {
  const auto p = static_cast<std::size_t>(world().size());
  for (const auto wire : wire_types) {
    const auto communicator = mpi(wire);
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, p * p + 1, std::size_t{13},
          std::size_t{997}, std::size_t{2048}, std::size_t{8191}, std::size_t{100'003},
          std::size_t{9'000'011}}) {
      auto values = own_values(count);
      communicator->allreduce(buffer_of(values));
      expect_every_bit(wire, values);
    }
  }
}

TEST(WireSum, HasTheSameBitsInPieces) {
  for (const auto wire : wire_types) {
    MpiCommunicator communicator(world(), wire, 1000);
    for (const std::size_t count : {999u, 1000u, 1001u, 12'345u}) {
      auto values = own_values(count);
      const auto pending = communicator.start_allreduce(buffer_of(values), nullptr);
      pending->wait();
      expect_every_bit(wire, values);
      EXPECT_GT(pending->times()->done, pending->times()->posted);
    }
  }
}

// Each value is rounded once and the sum once, with unit roundoff 2^-8 (bf16) and 2^-11 (fp16; at
// least half of its smallest subnormal, 2^-25); the fp32 sums add 2^-24 each.
TEST(WireSum, StaysWithinItsErrorBound) {
  for (const auto wire : wire_types) {
    const auto communicator = mpi(wire);
    auto values = own_values(50'000);
    communicator->allreduce(buffer_of(values));
    const int n = world().size();
    const double unit = wire == WireDtype::bf16 ? 0x1p-8 : 0x1p-11;
    const double smallest = wire == WireDtype::bf16 ? 0 : 0x1p-25;
    int beyond = 0, rounded = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double exact = 0, magnitude = 0;
      for (int rank = 0; rank < n; ++rank) {
        exact += value_of(rank, i);
        magnitude += std::fabs(value_of(rank, i));
      }
      const double bound =
          magnitude * (unit + (1 + unit) * (unit + n * 0x1p-24)) + (n + 1) * smallest;
      beyond += std::fabs(values[i] - exact) > bound;
      rounded += std::fabs(values[i] - exact) > magnitude * n * 0x1p-24;
    }
    EXPECT_EQ(beyond, 0);
    if (n > 1) {
      EXPECT_GT(rounded, 25'000) << "these values did not travel in a 2-byte type";
    } else {
      EXPECT_EQ(rounded, 0) << "one rank has nothing to send, and nothing to round";
    }
  }
}

TEST(WireSum, CarriesManyOperationsAtOnce) {
  for (const auto wire : wire_types) {
    const auto communicator = mpi(wire);
    std::vector<std::vector<float>> buffers;
    std::vector<std::unique_ptr<Pending>> pending;
    std::vector<std::int64_t> integers(1000, 1);
    // Falling sizes: later operations overtake earlier ones.
    for (std::size_t i = 40; i-- > 0;) buffers.push_back(own_values(i * i * 300 + 1));
    for (auto& values : buffers)
      pending.push_back(communicator->start_allreduce(buffer_of(values), nullptr));
    pending.push_back(
        communicator->start_allreduce({integers.data(), integers.size(), DataType::i64}, nullptr));
    world().barrier();  // control passes while data is in flight
    for (std::size_t i = pending.size(); i-- > 0;) pending[i]->wait();
    for (const auto& values : buffers) expect_every_bit(wire, values);
    EXPECT_EQ(integers, std::vector<std::int64_t>(1000, world().size()));
  }
}

TEST(WireSum, AnUnreadOperationEndsWithItsHandle) {
  auto communicator = mpi(WireDtype::bf16);
  auto values = own_values(100'000);
  communicator->start_allreduce(buffer_of(values), nullptr).reset();
  communicator.reset();
  expect_every_bit(WireDtype::bf16, values);
}

TEST(WireSum, AnOperationOutlivesItsCommunicator) {
  auto communicator = mpi(WireDtype::fp16);
  auto values = own_values(300'000);
  const auto pending = communicator->start_allreduce(buffer_of(values), nullptr);
  communicator.reset();
  pending->wait();
  expect_every_bit(WireDtype::fp16, values);
}

TEST(WireSum, WorksInASubgroup) {
  auto group = world().split(world().rank() == 0 ? -1 : 0);
  if (group) {
    const auto communicator = make_communicator(CommunicatorKind::mpi, *group, -1, WireDtype::bf16);
    std::vector<float> ones(5001, 1.0f);
    communicator->allreduce(buffer_of(ones));
    EXPECT_EQ(ones, std::vector<float>(5001, static_cast<float>(world().size() - 1)));
  }
  world().barrier();
}

// What training's check for non-finite gradients must still see; nothing is scaled or clamped.
TEST(WireSum, PassesOnWhatIsNotFinite) {
  const bool first = world().rank() == 0, alone = world().size() == 1;
  for (const auto wire : wire_types) {
    const auto communicator = mpi(wire);
    std::vector<float> values(10, 1.0f);
    if (first) values = {std::nanf(""), infinity, infinity, -infinity, 70'000, 1e-9f, 1, 1, 1, 1};
    if (!first) values[2] = -infinity, values[4] = values[5] = 0;
    communicator->allreduce(buffer_of(values));
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_EQ(values[1], infinity);
    EXPECT_EQ(std::isnan(values[2]), !alone);
    EXPECT_EQ(values[3], -infinity);
    EXPECT_EQ(values[4], alone ? 70'000 : through(wire, 70'000));
    EXPECT_EQ(values[5], alone ? 1e-9f : through(wire, 1e-9f));
    EXPECT_EQ(values[9], world().size());
  }
  EXPECT_EQ(through(WireDtype::fp16, 70'000), infinity);
  EXPECT_EQ(through(WireDtype::fp16, 1e-9f), 0);
}

TEST(WireSum, SaysWhatItSends) {
  const int n = world().size();
  const auto bf16 = mpi(WireDtype::bf16), fp16 = mpi(WireDtype::fp16);
  if (n == 1) {
    EXPECT_EQ(bf16->wire_dtype(), WireDtype::fp32);
    EXPECT_EQ(bf16->wire_bytes(1000), 0);
    return;
  }
  EXPECT_EQ(bf16->wire_dtype(), WireDtype::bf16);
  EXPECT_EQ(bf16->algorithm(), "all-to-all + all-gather, bf16 wire, fp32 sums");
  EXPECT_EQ(fp16->algorithm(), "all-to-all + all-gather, fp16 wire, fp32 sums");
  EXPECT_EQ(bf16->payload_bytes({nullptr, 1000, DataType::f32}), 2000);
  EXPECT_EQ(bf16->payload_bytes({nullptr, 1000, DataType::f64}), 8000);
  EXPECT_EQ(mpi(WireDtype::fp32)->payload_bytes({nullptr, 1000, DataType::f32}), 4000);
  // The same rule at every size, unlike the library's allreduce.
  for (const std::int64_t bytes : {24, 24'000, 24'000'000})
    EXPECT_EQ(fp16->wire_bytes(bytes), 2 * (n - 1) * bytes / n);
}

TEST(WireSum, CarriesTheBucketsOfAReducer) {
  const int n = world().size();
  for (const auto wire : wire_types) {
    const auto communicator = mpi(wire);
    std::vector<std::vector<float>> storage{own_values(600'000), own_values(12)};
    GradientReducer reducer(*communicator, {buffer_of(storage[0]), buffer_of(storage[1])}, {1, 1},
                            Overlap::backward);
    const std::int64_t payload = 600'012 * (n > 1 ? 2 : 4);
    EXPECT_EQ(reducer.bytes_per_step(), payload);
    EXPECT_EQ(reducer.wire_bytes_per_step(), 2 * (n - 1) * payload / n);
    reducer.add(0, nullptr);
    reducer.add(1, nullptr);
    reducer.finalize(nullptr);
    for (const auto& values : storage) expect_every_bit(wire, values);
  }
}

TEST(WireSum, IsSeenByTheDataCheck) {
  for (const auto wire : wire_types) {
    const auto communicator = mpi(wire);
    std::vector<float> values(10'007);
    EXPECT_NO_THROW(
        check_allreduce(*communicator, {buffer_of(values)}, world().rank(), /*corrupt=*/false));
    EXPECT_THROW(
        check_allreduce(*communicator, {buffer_of(values)}, world().rank(), /*corrupt=*/true),
        CommError);
  }
}

TEST(WireSum, HasNoMeaningForNone) {
  const auto communicator = make_communicator(CommunicatorKind::none, world(), -1, WireDtype::bf16);
  EXPECT_EQ(communicator->wire_dtype(), WireDtype::fp32);
  auto values = own_values(100);
  communicator->allreduce(buffer_of(values));
  EXPECT_EQ(values, own_values(100));
}

}  // namespace
}  // namespace scalemark::wire_sum_mpi_test
