// Measures latency and bandwidth between two ranks with messages in both directions.
#include "comm/pair_probe.hpp"

#include <algorithm>

#include "comm/rank_group_impl.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

constexpr int kPingPongs = 50, kPairTag = 1;
constexpr int kFewestExchanges = 3, kMostExchanges = 200;

/// Makes the calls of one pair on the MPI thread.
class Pair {
 public:
  Pair(MPI_Comm comm, int peer, bool leads, std::int64_t bytes)
      : comm_(comm),
        peer_(peer),
        leads_(leads),
        sent_(static_cast<std::size_t>(bytes), 1),
        received_(sent_.size()) {}

  double latency() {
    std::vector<double> trips;
    for (int i = 0; i <= kPingPongs; ++i) {
      const double start = steady_seconds();
      if (leads_) send(8);
      receive(8);
      if (!leads_) send(8);
      if (i > 0) trips.push_back(steady_seconds() - start);  // the first one connects
    }
    return median(trips) / 2;
  }

  double bandwidth(double seconds) {
    const double first = exchange();
    int repetitions = static_cast<int>(std::clamp(
        seconds / std::max(first, 1e-7), double{kFewestExchanges}, double{kMostExchanges}));
    // Both ranks must use the same number.
    if (leads_)
      check_mpi(MPI_Send(&repetitions, 1, MPI_INT, peer_, kPairTag, comm_), "MPI_Send");
    else
      check_mpi(MPI_Recv(&repetitions, 1, MPI_INT, peer_, kPairTag, comm_, MPI_STATUS_IGNORE),
                "MPI_Recv");
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) times.push_back(exchange());
    return static_cast<double>(sent_.size()) / median(times);
  }

 private:
  void send(int count) {
    check_mpi(MPI_Send(sent_.data(), count, MPI_BYTE, peer_, kPairTag, comm_), "MPI_Send");
  }
  void receive(int count) {
    check_mpi(
        MPI_Recv(received_.data(), count, MPI_BYTE, peer_, kPairTag, comm_, MPI_STATUS_IGNORE),
        "MPI_Recv");
  }
  double exchange() {
    const double start = steady_seconds();
    const auto count = static_cast<int>(sent_.size());
    check_mpi(MPI_Sendrecv(sent_.data(), count, MPI_BYTE, peer_, kPairTag, received_.data(), count,
                           MPI_BYTE, peer_, kPairTag, comm_, MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
    return steady_seconds() - start;
  }

  MPI_Comm comm_;
  int peer_;
  bool leads_;
  std::vector<char> sent_, received_;
};

}  // namespace

int pair_rounds(int size) { return size < 2 ? 0 : size + size % 2 - 1; }

int peer_in_round(int rank, int size, int round) {
  const int rounds = pair_rounds(size);
  // The last rank stays, the others move on by one in each round. Where `size` is odd, the last one
  // stands for nobody.
  int peer = rank == rounds ? round : ((2 * round - rank) % rounds + rounds) % rounds;
  if (rank != rounds && peer == rank) peer = rounds;
  return peer < size ? peer : -1;
}

std::vector<PairTiming> measure_pair_round(RankGroup& group, int round, std::int64_t bytes,
                                           double seconds) {
  const int rank = group.rank(), peer = peer_in_round(rank, group.size(), round);
  group.barrier();
  if (peer < 0) return {};
  PairTiming timing{std::min(rank, peer), std::max(rank, peer)};
  const auto impl = group.impl();
  impl->world->call("pairs of hosts", [&] {
    Pair pair(impl->communicator, peer, rank < peer, bytes);
    timing.latency_seconds = pair.latency();
    timing.bytes_per_second = pair.bandwidth(seconds);
  });
  if (rank > peer) return {};
  return {timing};
}

}  // namespace scalemark
