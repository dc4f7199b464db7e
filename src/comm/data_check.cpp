// Implements the untimed data check. It uses values whose sum over ranks has a closed form,
// different at neighbouring elements and for every rank, and small enough to be exact in every
// dtype at every hop.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "comm/gradient_reducer.hpp"
#include "comm/half.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::size_t period = 7 * 11;

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

std::array<int, period> closed_form(int ranks, DataType type) {
  std::array<int, period> sums{};
  for (std::size_t i = 0; i < period; ++i)
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

void fill(const Buffer& buffer, int rank) {
  with_elements(buffer, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    for (std::size_t i = 0; i < buffer.count; ++i)
      elements[i] = stored<T>(contribution(rank, i, buffer.type));
  });
}

void compare_block(const Buffer& block, int from, int rank) {
  with_elements(block, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    for (std::size_t i = 0; i < block.count; ++i) {
      const T right = stored<T>(contribution(from, i, block.type));
      if (shown(elements[i]) == shown(right)) continue;
      throw CommError(fmt::format(
          "data check: the allgather is wrong on rank {}: block of rank {} ({} {} elements), "
          "element {}: expected {:g}, found {:g}",
          rank, from, block.count, to_string(block.type), i, shown(right), shown(elements[i])));
    }
  });
}

/// Compares sums whose first one is element `first` of what was summed.
void compare(const Buffer& buffer, std::size_t first, const std::string& what, int contributors) {
  const auto expected = closed_form(contributors, buffer.type);
  with_elements(buffer, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    for (std::size_t i = 0; i < buffer.count; ++i) {
      const T right = stored<T>(expected[(first + i) % period]);
      if (shown(elements[i]) == shown(right)) continue;
      throw CommError(fmt::format(
          "data check: the {} ({} {} elements), element {}: expected {:g}, found {:g}", what,
          buffer.count, to_string(buffer.type), i, shown(right), shown(elements[i])));
    }
  });
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
    compare_block({data, counts[from], all.type}, first + static_cast<int>(from), rank);
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
