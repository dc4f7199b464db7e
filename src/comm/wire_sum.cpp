// Implements the three stages of a sum with a 2-byte wire type: round and scatter, sum and gather,
// widen.
#include "comm/wire_sum.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

namespace scalemark {
namespace {

/// The number of elements that are processed at once, in the first-level cache.
constexpr std::size_t block = 2048;

/// Visits the peers in the order in which to send to them. Each rank begins with its neighbour, so
/// that not all send to rank 0 first.
template <typename F>
void for_each_peer(const Peers& peers, F f) {
  for (int i = 1; i < peers.size; ++i) f((peers.rank + i) % peers.size);
}

/// Sends and receives of 2-byte elements that are complete together.
class Exchange {
 public:
  Exchange(const Peers& peers, int tag) : peers_(peers), tag_(tag) {
    requests_.reserve(2 * static_cast<std::size_t>(peers.size));
  }
  void send(const std::uint16_t* data, std::size_t count, int peer) {
    if (count == 0) return;
    check_mpi(MPI_Isend(data, static_cast<int>(count), MPI_UINT16_T, peer, tag_,
                        peers_.communicator, &requests_.emplace_back()),
              "MPI_Isend");
  }
  void receive(std::uint16_t* data, std::size_t count, int peer) {
    if (count == 0) return;
    check_mpi(MPI_Irecv(data, static_cast<int>(count), MPI_UINT16_T, peer, tag_,
                        peers_.communicator, &requests_.emplace_back()),
              "MPI_Irecv");
  }
  std::vector<MPI_Request> requests() { return std::move(requests_); }

 private:
  const Peers& peers_;
  int tag_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

Shard shard_of(std::size_t count, int ranks, int rank) {
  const auto p = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  const std::size_t shorter = count / p, longer = count % p;
  const auto first = [&](std::size_t shard) { return shard * shorter + std::min(shard, longer); };
  return {first(r), first(r + 1)};
}

WireSum::WireSum(Peers peers, const HalfLoops& loops, float* values, std::size_t count, int tag)
    : peers_(std::move(peers)),
      loops_(loops),
      values_(values),
      count_(count),
      tag_(tag),
      wire_(reinterpret_cast<std::uint16_t*>(values)),
      received_(wire_ + count) {}

std::vector<Operation::Post> WireSum::stages(WireSum sum) {
  const auto shared = std::make_shared<WireSum>(std::move(sum));
  return {[shared] { return shared->scatter(); }, [shared] { return shared->sum_and_gather(); },
          [shared] {
            shared->widen();
            return std::vector<MPI_Request>{};
          }};
}

std::uint16_t* WireSum::contribution(int rank) {
  const auto own = shard(peers_.rank);
  if (rank == peers_.rank) return wire_ + own.first;
  return received_ + static_cast<std::size_t>(rank - (rank > peers_.rank ? 1 : 0)) * own.count();
}

std::vector<MPI_Request> WireSum::scatter() {
  const std::size_t own = shard(peers_.rank).count();
  const std::size_t needed = own * static_cast<std::size_t>(peers_.size - 1);
  if (needed > count_) {
    small_.resize(needed);
    received_ = small_.data();
  }
  Exchange exchange(peers_, tag_);
  // This works from the start: the rounded values of a block lie before all that are still to be
  // read.
  std::array<std::uint16_t, block> rounded;
  for (std::size_t first = 0; first < count_; first += block) {
    const std::size_t n = std::min(block, count_ - first);
    loops_.round(values_ + first, rounded.data(), n);
    std::memcpy(wire_ + first, rounded.data(), n * sizeof rounded[0]);
  }
  for_each_peer(peers_, [&](int peer) { exchange.receive(contribution(peer), own, peer); });
  for_each_peer(peers_, [&](int peer) {
    exchange.send(wire_ + shard(peer).first, shard(peer).count(), peer);
  });
  return exchange.requests();
}

/// Sums in rank order, so that a sum has the same bits whichever rank computes it.
std::vector<MPI_Request> WireSum::sum_and_gather() {
  const auto own = shard(peers_.rank);
  std::array<float, block> sum;
  for (std::size_t first = 0; first < own.count(); first += block) {
    const std::size_t n = std::min(block, own.count() - first);
    loops_.widen(contribution(0) + first, sum.data(), n);
    for (int rank = 1; rank < peers_.size; ++rank)
      loops_.add(contribution(rank) + first, sum.data(), n);
    loops_.round(sum.data(), wire_ + own.first + first, n);
  }
  Exchange exchange(peers_, tag_ + 1);
  for_each_peer(peers_, [&](int peer) {
    exchange.receive(wire_ + shard(peer).first, shard(peer).count(), peer);
  });
  for_each_peer(peers_, [&](int peer) { exchange.send(wire_ + own.first, own.count(), peer); });
  return exchange.requests();
}

/// Works from the end: the fp32 values of a block lie after all sums that are still to be read.
void WireSum::widen() {
  std::array<std::uint16_t, block> sums;
  for (std::size_t left = (count_ + block - 1) / block; left-- > 0;) {
    const std::size_t first = left * block, n = std::min(block, count_ - first);
    std::memcpy(sums.data(), wire_ + first, n * sizeof sums[0]);
    loops_.widen(sums.data(), values_ + first, n);
  }
}

}  // namespace scalemark
