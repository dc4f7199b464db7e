// Computes sizes, algorithm bandwidth and bus factors of collectives.
#include "measure/bus_bandwidth.hpp"

#include <algorithm>

namespace scalemark {

std::string_view to_string(Collective collective) {
  return names_of(collective)[static_cast<std::size_t>(collective)];
}

std::int64_t collective_bytes(Collective collective, std::int64_t asked, int ranks) {
  const bool blocks = collective != Collective::allreduce && collective != Collective::broadcast;
  const std::int64_t unit = blocks ? 4 * static_cast<std::int64_t>(ranks) : 4;
  return std::max(unit, asked / unit * unit);
}

double algorithm_bandwidth(std::int64_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds;
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::allreduce:
      return 2 * (n - 1) / n;
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::reduce_scatter:
      return (n - 1) / n;
    case Collective::broadcast:
      break;
  }
  return 1;
}

}  // namespace scalemark
