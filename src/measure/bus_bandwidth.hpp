// Defines sizes and bandwidths of collectives as nccl-tests does (its doc/PERFORMANCE.md), so that
// numbers can be compared with those measured elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace scalemark {

enum class Collective { allreduce, allgather, alltoall, broadcast, reduce_scatter };
inline constexpr std::array kCollectives{Collective::allreduce, Collective::allgather,
                                         Collective::alltoall, Collective::broadcast};
constexpr auto names_of(Collective) {
  return std::array<std::string_view, 5>{"allreduce", "allgather", "alltoall", "broadcast",
                                         "reduce_scatter"};
}
std::string_view to_string(Collective collective);

/// Returns the bytes of a collective of fp32 elements for which `asked` bytes were asked. The
/// result is a whole number of elements, at least one; an allgather and an alltoall have the same
/// number from each rank. The size of an allreduce and of a broadcast is that of the buffer. For an
/// allgather it is what each rank ends up with. For an alltoall it is what each rank sends,
/// including the block for itself.
std::int64_t collective_bytes(Collective collective, std::int64_t asked, int ranks);

/// Returns bytes / seconds, in bytes per second.
double algorithm_bandwidth(std::int64_t bytes, double seconds);

/// Returns the factor by which algorithm_bandwidth() is multiplied to give the rate of the slowest
/// link, independent of the number of ranks n. It is 2 (n - 1) / n for allreduce, (n - 1) / n for
/// allgather and alltoall, and 1 for broadcast.
double bus_factor(Collective collective, int ranks);

/// Returns the bytes that each rank sends in a ring allgather, averaged over ranks and rounded up.
/// Every one of the `bytes` of all blocks passes all ranks but one (Thakur et al. 2005, section
/// 4.1).
constexpr std::int64_t ring_allgather_bytes(std::int64_t bytes, std::int64_t ranks) {
  return ((ranks - 1) * bytes + ranks - 1) / ranks;
}
/// Returns the bytes that each rank sends in a ring allreduce of `bytes`, which is a reduce-scatter
/// followed by an allgather (Patarasuk and Yuan 2009).
constexpr std::int64_t ring_allreduce_bytes(std::int64_t bytes, std::int64_t ranks) {
  return ring_allgather_bytes(2 * bytes, ranks);
}

}  // namespace scalemark
