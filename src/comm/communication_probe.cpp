// Times collectives and checks their data, which goes to and from the carrier in tiles, so that
// buffers of a GPU need no copy of the same size in host memory; and measures latency and bandwidth
// between two ranks with messages in both directions.
#include "comm/communication_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "comm/rank_group_impl.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

namespace {

// The period is a prime, so that blocks of a power of two elements begin with different values.
// Sums of 0..250 are exact in fp32 on up to 67,000 ranks.
constexpr std::size_t kPeriod = 251;
constexpr int kFewestRepetitions = 3, kMostRepetitions = 10'000;
constexpr std::size_t kTile = std::size_t{4} << 20;  // elements

/// Returns element i of what rank `from` sends to rank `to` (0 where all get the same).
float value(std::size_t from, std::size_t to, std::size_t i) {
  return static_cast<float>((31 * from + 17 * to + i) % kPeriod);
}

std::vector<float> sums(std::size_t ranks) {
  std::vector<float> table(kPeriod, 0.f);
  for (std::size_t i = 0; i < kPeriod; ++i)
    for (std::size_t rank = 0; rank < ranks; ++rank) table[i] += value(rank, 0, i);
  return table;
}

/// Calls `use(first, tile)` for all tiles of `elements`.
void for_each_tile(std::size_t elements,
                   const std::function<void(std::size_t first, std::span<float>)>& use) {
  std::vector<float> tile(std::min(elements, kTile));
  for (std::size_t first = 0; first < elements; first += kTile)
    use(first, std::span(tile).first(std::min(kTile, elements - first)));
}

template <typename F>
void set(std::span<float> tile, std::size_t first, F element) {
  for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = element(first + i);
}

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

std::vector<double> CollectiveProbe::of_all_ranks(double mine) {
  std::vector<double> values(static_cast<std::size_t>(group_.size()), 0.);
  values[static_cast<std::size_t>(group_.rank())] = mine;
  return group_.all_sum(std::move(values));
}

void CollectiveProbe::fill(Collective collective, std::size_t elements) {
  const auto rank = static_cast<std::size_t>(group_.rank());
  const std::size_t block = elements / static_cast<std::size_t>(group_.size());
  for_each_tile(elements, [&](std::size_t first, std::span<float> tile) {
    set(tile, first, [](std::size_t) { return -1.f; });
    carrier_.put_received(first, tile);
  });
  if (collective == Collective::broadcast && rank != 0) return;
  const bool in_place = carrier_.in_place(collective);
  const bool gathers = collective == Collective::allgather;
  const std::size_t offset = in_place && gathers ? rank * block : 0;
  for_each_tile(gathers ? block : elements, [&](std::size_t first, std::span<float> tile) {
    set(tile, first, [&](std::size_t i) {
      return collective == Collective::alltoall ? value(rank, i / block, i % block)
                                                : value(rank, 0, i);
    });
    in_place ? carrier_.put_received(offset + first, tile) : carrier_.put_sent(first, tile);
  });
}

std::string CollectiveProbe::compare(Collective collective, std::size_t elements,
                                     std::int64_t& wrong) {
  const auto ranks = static_cast<std::size_t>(group_.size());
  const auto rank = static_cast<std::size_t>(group_.rank());
  const std::size_t block = elements / ranks;
  const std::vector<float> table = sums(ranks);
  const auto right = [&](std::size_t i) {
    switch (collective) {
      case Collective::allreduce:
        return table[i % kPeriod];
      case Collective::allgather:
        return value(i / block, 0, i % block);
      case Collective::alltoall:
        return value(i / block, rank, i % block);
      case Collective::broadcast:
      case Collective::reduce_scatter:  // nobody asks for it yet
        break;
    }
    return value(0, 0, i);
  };
  std::string words;
  for_each_tile(elements, [&](std::size_t first, std::span<float> tile) {
    carrier_.get_received(first, tile);
    for (std::size_t i = 0; i < tile.size(); ++i) {
      if (tile[i] == right(first + i)) continue;
      if (wrong++ == 0)
        words = fmt::format("rank {}: element {} is {}, not {}", rank, first + i, tile[i],
                            right(first + i));
    }
  });
  return words;
}

std::vector<double> CollectiveProbe::run(Collective collective, std::size_t elements,
                                         int repetitions) {
  group_.barrier();
  return carrier_.run(collective, elements, repetitions);
}

CollectiveTiming CollectiveProbe::measure(Collective collective, std::int64_t asked_bytes,
                                          double seconds, bool corrupt) {
  if (!carrier_.carries(collective))
    throw CommError(fmt::format("collective probe: this carrier has no {}", to_string(collective)));
  CollectiveTiming timing;
  timing.bytes = collective_bytes(collective, asked_bytes, group_.size());
  const auto elements = static_cast<std::size_t>(timing.bytes / 4);
  fill(collective, elements);
  const double first = run(collective, elements, 1).front();
  if (corrupt) {
    float damaged = 0;
    carrier_.get_received(elements / 2, {&damaged, 1});
    ++damaged;
    carrier_.put_received(elements / 2, {&damaged, 1});
  }
  std::int64_t wrong = 0;
  const std::string message = compare(collective, elements, wrong);
  for (const double of_rank : of_all_ranks(static_cast<double>(wrong)))
    timing.wrong_elements += static_cast<std::int64_t>(of_rank);
  if (timing.wrong_elements > 0)
    for (const std::string& text : group_.all_gather(message))
      if (timing.first_wrong.empty()) timing.first_wrong = text;

  // The result is set to zero, since sums of sums would overflow and zeros stay zeros.
  for_each_tile(elements, [&](std::size_t at, std::span<float> tile) {
    std::ranges::fill(tile, 0.f);
    carrier_.put_received(at, tile);
  });
  const double longest = std::ranges::max(of_all_ranks(first));
  timing.repetitions = static_cast<int>(std::clamp(
      seconds / std::max(longest, 1e-7), double{kFewestRepetitions}, double{kMostRepetitions}));
  const auto times = run(collective, elements, timing.repetitions);
  timing.seconds = std::ranges::max(of_all_ranks(median(times)));
  return timing;
}

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
