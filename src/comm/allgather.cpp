// Implements an allgather by MPI_Iallgatherv, whose counts and displacements are ints. Blocks are
// counted in units of their greatest common divisor, so that rows of a table can be larger than
// with counts of elements (64 ranks x 42,768 rows x 1024 elements exceed an int).
#include "comm/allgather.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "error.hpp"

namespace scalemark {
namespace {

struct GatherLayout {
  std::size_t unit_bytes = 0;  ///< 0: nothing to gather
  std::vector<int> counts, displacements;
  MPI_Datatype unit = MPI_DATATYPE_NULL;  ///< made, used and freed in turn
};

void check_buffers(const Peers& peers, const Buffer& mine, const Buffer& all,
                   const std::vector<std::size_t>& counts) {
  const auto rank = static_cast<std::size_t>(peers.rank);
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (counts.size() == static_cast<std::size_t>(peers.size) && counts[rank] == mine.count &&
      total == all.count && mine.type == all.type)
    return;
  throw CommError(fmt::format(
      "allgather on rank {} of {}: {} {} elements into {} {}, but the {} counts say {} into {}",
      peers.rank, peers.size, mine.count, to_string(mine.type), all.count, to_string(all.type),
      counts.size(), rank < counts.size() ? counts[rank] : 0, total));
}

GatherLayout layout_of(DataType type, const std::vector<std::size_t>& counts) {
  std::size_t unit = 0;
  for (const std::size_t count : counts) unit = std::gcd(unit, count);
  // Equal blocks would be one unit each. The unit is made smaller so that its bytes fit into an
  // int, too.
  while (unit % 2 == 0 && unit * size_of(type) > (1u << 20)) unit /= 2;
  GatherLayout layout;
  layout.unit_bytes = unit * size_of(type);
  if (unit == 0) return layout;
  constexpr std::size_t largest = std::numeric_limits<int>::max();
  std::size_t displacement = 0;
  for (const std::size_t count : counts) {
    layout.counts.push_back(static_cast<int>(count / unit));
    layout.displacements.push_back(static_cast<int>(displacement));
    displacement += count / unit;
  }
  if (displacement > largest || layout.unit_bytes > largest)
    throw CommError(
        fmt::format("allgather of {} units of {} bytes: MPI counts at most {} of each; gather less "
                    "at once (a smaller batch, or dense gradients)",
                    displacement, layout.unit_bytes, largest));
  return layout;
}

}  // namespace

std::vector<Operation::Post> allgather_stages(const Peers& peers, const Buffer& mine,
                                              const Buffer& all,
                                              const std::vector<std::size_t>& counts) {
  check_buffers(peers, mine, all, counts);
  const auto layout = std::make_shared<GatherLayout>(layout_of(mine.type, counts));
  if (layout->unit_bytes == 0) return {};
  const auto gather = [peers, mine, all, layout]() -> std::vector<MPI_Request> {
    if (peers.size == 1) {
      std::memcpy(all.data, mine.data, mine.bytes());
      return {};
    }
    check_mpi(MPI_Type_contiguous(static_cast<int>(layout->unit_bytes), MPI_BYTE, &layout->unit),
              "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&layout->unit), "MPI_Type_commit");
    MPI_Request request = MPI_REQUEST_NULL;
    const int own = layout->counts[static_cast<std::size_t>(peers.rank)];
    check_mpi(
        MPI_Iallgatherv(mine.data, own, layout->unit, all.data, layout->counts.data(),
                        layout->displacements.data(), layout->unit, peers.communicator, &request),
        "MPI_Iallgatherv");
    return {request};
  };
  // This is a stage of its own, since handles may be freed only while holding the MPI turn.
  const auto free_unit = [layout]() -> std::vector<MPI_Request> {
    if (layout->unit != MPI_DATATYPE_NULL) check_mpi(MPI_Type_free(&layout->unit), "MPI_Type_free");
    return {};
  };
  return {gather, free_unit};
}

}  // namespace scalemark
