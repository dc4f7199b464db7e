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

MPI_Datatype mpi_type(const std::uint16_t*) { return MPI_UINT16_T; }
MPI_Datatype mpi_type(const float*) { return MPI_FLOAT; }
MPI_Datatype mpi_type(const char*) { return MPI_BYTE; }

/// Sends and receives that are complete together.
class Exchange {
 public:
  Exchange(const Peers& peers, int tag) : peers_(peers), tag_(tag) {
    requests_.reserve(2 * static_cast<std::size_t>(peers.size));
  }
  template <typename T>
  void send(const T* data, std::size_t count, int peer) {
    if (count == 0) return;
    check_mpi(MPI_Isend(data, static_cast<int>(count), mpi_type(data), peer, tag_,
                        peers_.communicator, &requests_.emplace_back()),
              "MPI_Isend");
  }
  template <typename T>
  void receive(T* data, std::size_t count, int peer) {
    if (count == 0) return;
    check_mpi(MPI_Irecv(data, static_cast<int>(count), mpi_type(data), peer, tag_,
                        peers_.communicator, &requests_.emplace_back()),
              "MPI_Irecv");
  }
  std::vector<MPI_Request> requests() { return std::move(requests_); }

 private:
  const Peers& peers_;
  int tag_;
  std::vector<MPI_Request> requests_;
};

/// Rounds values into the first half of their own memory. This works from the start: the rounded
/// values of a block lie before all that are still to be read.
void round_in_place(const HalfLoops& loops, float* values, std::size_t count) {
  auto* const wire = reinterpret_cast<std::uint16_t*>(values);
  std::array<std::uint16_t, block> rounded;
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t n = std::min(block, count - first);
    loops.round(values + first, rounded.data(), n);
    std::memcpy(wire + first, rounded.data(), n * sizeof rounded[0]);
  }
}

}  // namespace

Block block_of(std::size_t count, int ranks, int rank) {
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
  round_in_place(loops_, values_, count_);
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

std::vector<Operation::Post> ShardSum::stages(ShardSum sum) {
  const auto shared = std::make_shared<ShardSum>(std::move(sum));
  return {[shared] { return shared->scatter(); },
          [shared] {
            shared->add_up();
            return std::vector<MPI_Request>{};
          }};
}

std::vector<MPI_Request> ShardSum::scatter() {
  Exchange exchange(peers_, tag_);
  const std::size_t count = part_.count;
  if (loops_) {
    for (int rank = 0; rank < peers_.size; ++rank) round_in_place(*loops_, values_of(rank), count);
    for_each_peer(peers_, [&](int peer) { exchange.receive(received_rounded(peer), count, peer); });
    for_each_peer(peers_, [&](int peer) { exchange.send(rounded(peer), count, peer); });
    return exchange.requests();
  }
  received_ =
      std::make_unique_for_overwrite<float[]>(count * static_cast<std::size_t>(peers_.size - 1));
  for_each_peer(peers_, [&](int peer) { exchange.receive(received(peer), count, peer); });
  for_each_peer(peers_, [&](int peer) { exchange.send(values_of(peer), count, peer); });
  return exchange.requests();
}

void ShardSum::add_up() {
  std::array<std::uint16_t, block> wire;
  for (std::size_t first = 0; first < part_.count; first += block) {
    const std::size_t n = std::min(block, part_.count - first);
    float* const sum = part_.sum + first;
    for (int rank = 0; rank < peers_.size; ++rank) {
      if (loops_) {
        const auto* const values =
            (rank == peers_.rank ? rounded(rank) : received_rounded(rank)) + first;
        (rank == 0 ? loops_->widen : loops_->add)(values, sum, n);
      } else {
        const float* const values =
            (rank == peers_.rank ? values_of(rank) : received(rank)) + first;
        if (rank == 0)
          std::memcpy(sum, values, n * sizeof *sum);
        else
          add_f32(values, sum, n);
      }
    }
    if (!loops_) continue;
    loops_->round(sum, wire.data(), n);  // as an allreduce rounds it before it is sent
    loops_->widen(wire.data(), sum, n);
  }
  received_.reset();
}

Operation::Post gather_part(Peers peers, GatherPart part, int tag) {
  return [peers = std::move(peers), part = std::move(part), tag] {
    const std::size_t width = size_of(part.all.type);
    std::vector<char*> blocks;
    auto* block = static_cast<char*>(part.all.data) + part.first * width;
    for (const std::size_t count : part.counts) {
      blocks.push_back(block);
      block += count * width;
    }
    const auto bytes_of = [&](int rank) {
      const std::size_t count = part.counts[static_cast<std::size_t>(rank)];
      return std::min(count - std::min(count, part.first), part.most) * width;
    };
    const auto place_of = [&](int rank) { return blocks[static_cast<std::size_t>(rank)]; };
    const char* const mine = static_cast<const char*>(part.mine.data) + part.first * width;
    const std::size_t own = bytes_of(peers.rank);
    if (own > 0 && mine != place_of(peers.rank)) std::memcpy(place_of(peers.rank), mine, own);
    Exchange exchange(peers, tag);
    for_each_peer(peers, [&](int peer) { exchange.receive(place_of(peer), bytes_of(peer), peer); });
    for_each_peer(peers, [&](int peer) { exchange.send(mine, own, peer); });
    return exchange.requests();
  };
}

}  // namespace scalemark
