// Implements the untimed data check. It uses values whose sum over ranks has a closed form,
// different at neighbouring elements and for every rank, and small enough to be exact in every
// dtype at every hop.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "comm/gradient_reducer.hpp"
#include "comm/half.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

/// Values repeat themselves after so many elements. They are written and compared in blocks of
/// whole periods, at the speed of memory.
constexpr std::size_t kValues = 7 * 11, kValuesOfABlock = 128 * kValues;

/// Returns what rank `rank` contributes to element `i`. Every rank contributes -3..3 such that any
/// run of consecutive ranks sums to at most 6, whatever their number; rank 0 adds 0..10, so that no
/// sum is zero everywhere. No value or sum exceeds 16, on any number of ranks; bf16 is exact to
/// 256. u8 must not wrap, since Open MPI's vector code saturates: there every seventh element gets
/// a one, which suffices for 1,700 ranks.
int contribution(int rank, std::size_t i, DataType type) {
  const int turn = static_cast<int>((static_cast<std::size_t>(rank) + i) % 7);
  const int varied = type == DataType::u8 ? (turn == 0 ? 1 : 0) : turn - 3;
  return rank == 0 ? varied + static_cast<int>(i % 11) : varied;
}

std::array<int, kValues> closed_form(int ranks, DataType type) {
  std::array<int, kValues> sums{};
  for (std::size_t i = 0; i < kValues; ++i)
    for (int rank = 0; rank < ranks; ++rank) sums[i] += contribution(rank, i, type);
  return sums;
}

template <typename T>
T stored(int value) {
  return static_cast<T>(value);
}
struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};
template <>
Bf16 stored<Bf16>(int value) {
  return {float_to_bf16(static_cast<float>(value))};
}
template <>
F16 stored<F16>(int value) {
  return {float_to_f16(static_cast<float>(value))};
}
template <typename T>
double shown(T value) {
  return static_cast<double>(value);
}
double shown(Bf16 value) { return bf16_to_float(value.bits); }
double shown(F16 value) { return f16_to_float(value.bits); }

/// Calls `f(T* elements)` with the element type of the buffer.
template <typename F>
void with_elements(const Buffer& buffer, F f) {
  switch (buffer.type) {
    case DataType::f64:
      return f(static_cast<double*>(buffer.data));
    case DataType::f32:
      return f(static_cast<float*>(buffer.data));
    case DataType::bf16:
      return f(static_cast<Bf16*>(buffer.data));
    case DataType::f16:
      return f(static_cast<F16*>(buffer.data));
    case DataType::i64:
      return f(static_cast<std::int64_t*>(buffer.data));
    case DataType::i32:
      return f(static_cast<std::int32_t*>(buffer.data));
    case DataType::u8:
      return f(static_cast<std::uint8_t*>(buffer.data));
  }
}

/// Calls `f(block, first, count)` for each block of n elements that begin with value(0).
template <typename T, typename Value, typename F>
void for_each_block(std::size_t n, const Value& value, F f) {
  std::vector<T> block(std::min(n, kValuesOfABlock));
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = i < kValues ? stored<T>(value(i)) : block[i - kValues];
  for (std::size_t first = 0; first < n; first += kValuesOfABlock)
    f(block.data(), first, std::min(kValuesOfABlock, n - first));
}

void fill(const Buffer& buffer, int rank) {
  with_elements(buffer, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    for_each_block<T>(
        buffer.count, [&](std::size_t i) { return contribution(rank, i, buffer.type); },
        [&](const T* block, std::size_t first, std::size_t count) {
          std::copy_n(block, count, elements + first);
        });
  });
}

/// Throws where an element is not value(i); `what` says where the elements come from.
template <typename Value>
void expect_values(const Buffer& buffer, const std::string& what, const Value& value) {
  with_elements(buffer, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    for_each_block<T>(
        buffer.count, value, [&](const T* block, std::size_t first, std::size_t count) {
          if (std::memcmp(block, elements + first, count * sizeof(T)) == 0) return;
          for (std::size_t i = 0; i < count; ++i) {
            const double right = shown(block[i]), found = shown(elements[first + i]);
            if (right == found) continue;  // zeros have two signs
            throw CommError(fmt::format(
                "data check: the {} ({} {} elements), element {}: expected {:g}, found {:g}", what,
                buffer.count, to_string(buffer.type), first + i, right, found));
          }
        });
  });
}

/// Compares sums whose first one is element `first` of what was summed.
void compare(const Buffer& buffer, std::size_t first, const std::string& what, int contributors) {
  const auto expected = closed_form(contributors, buffer.type);
  expect_values(buffer, what, [&](std::size_t i) { return expected[(first + i) % kValues]; });
}

void corrupt_one(const std::vector<Buffer>& buckets) {
  for (const auto& bucket : buckets) {
    if (bucket.count == 0) continue;
    return with_elements(bucket, [&](auto* elements) {
      using T = std::remove_pointer_t<decltype(elements)>;
      auto& element = elements[bucket.count / 2];
      element = stored<T>(static_cast<int>(shown(element)) + 1);
    });
  }
}

}  // namespace

void check_reduce_scatter(Communicator& communicator, const Buffer& all, const Buffer& mine,
                          int rank, bool corrupt) {
  if (!communicator.moves_data()) return;
  fill(all, rank);
  asynchronous(communicator).start_reduce_scatter(all, mine, nullptr)->wait();
  int contributors = communicator.size();
  if (Communicator* const replicas = communicator.replicas()) {
    replicas->allreduce(mine);
    contributors *= replicas->size();
  }
  if (corrupt) corrupt_one({mine});
  compare(mine, static_cast<std::size_t>(rank % communicator.size()) * mine.count,
          fmt::format("reduce-scatter{} is wrong on rank {}",
                      communicator.replicas() ? " with the allreduce between groups" : "", rank),
          contributors);
}

void check_allgather(Communicator& communicator, const Buffer& mine, const Buffer& all,
                     const std::vector<std::size_t>& counts, int rank, bool corrupt) {
  if (!communicator.moves_data()) return;
  fill(mine, rank);
  asynchronous(communicator).start_allgather(mine, all, counts, nullptr)->wait();
  if (corrupt) corrupt_one({all});
  auto* data = static_cast<char*>(all.data);
  const int first = rank - rank % communicator.size();
  for (std::size_t from = 0; from < counts.size(); ++from) {
    const int sender = first + static_cast<int>(from);
    expect_values({data, counts[from], all.type},
                  fmt::format("allgather is wrong on rank {}: block of rank {}", rank, sender),
                  [&](std::size_t i) { return contribution(sender, i, all.type); });
    data += counts[from] * size_of(all.type);
  }
}

void check_allreduce(Communicator& communicator, const std::vector<Buffer>& host_buckets, int rank,
                     bool corrupt) {
  // Without communication, each rank must find its own values again.
  const bool sums = communicator.moves_data();
  std::vector<std::unique_ptr<Pending>> pending;
  for (const auto& bucket : host_buckets) fill(bucket, sums ? rank : 0);
  for (const auto& bucket : host_buckets)
    pending.push_back(communicator.start_allreduce(bucket, nullptr));
  for (const auto& operation : pending) operation->wait();
  if (corrupt) corrupt_one(host_buckets);
  const int contributors = sums ? communicator.size() : 1;
  for (std::size_t bucket = 0; bucket < host_buckets.size(); ++bucket)
    compare(host_buckets[bucket], 0,
            fmt::format("allreduce is wrong on rank {}: bucket {}", rank, bucket), contributors);
}

}  // namespace scalemark
