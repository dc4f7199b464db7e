// Sizes and bandwidths of collectives as nccl-tests defines them (its doc/PERFORMANCE.md), so that
// numbers compare with what people have measured elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace scalemark {

enum class Collective { allreduce, allgather, alltoall, broadcast };
inline constexpr std::array kCollectives{Collective::allreduce, Collective::allgather,
                                         Collective::alltoall, Collective::broadcast};
std::string_view to_string(Collective collective);

/// The bytes that a collective of fp32 elements really has when `asked` bytes are asked for: whole
/// elements, of an allgather or alltoall the same number from each rank, at least one.
/// Of an allreduce and a broadcast: the buffer. Of an allgather: what each rank ends up with. Of an
/// alltoall: what each rank sends, the block for itself included.
std::int64_t collective_bytes(Collective collective, std::int64_t asked, int ranks);

/// bytes / seconds.
double algorithm_bandwidth(std::int64_t bytes, double seconds);

/// What algorithm_bandwidth() is multiplied with to give the rate at which the slowest link worked,
/// whatever the number of ranks n: 2 (n - 1) / n for allreduce, (n - 1) / n for allgather and
/// alltoall, 1 for broadcast.
double bus_factor(Collective collective, int ranks);

/// Bytes that each rank sends for an allgather by a ring, mean over ranks, rounded up: every one of
/// the `bytes` of all blocks passes all ranks but one (Thakur et al. 2005, section 4.1).
constexpr std::int64_t ring_allgather_bytes(std::int64_t bytes, std::int64_t ranks) {
  return ((ranks - 1) * bytes + ranks - 1) / ranks;
}
/// The same for an allreduce of `bytes`: a reduce-scatter, then an allgather (Patarasuk and Yuan
/// 2009).
constexpr std::int64_t ring_allreduce_bytes(std::int64_t bytes, std::int64_t ranks) {
  return ring_allgather_bytes(2 * bytes, ranks);
}

}  // namespace scalemark
