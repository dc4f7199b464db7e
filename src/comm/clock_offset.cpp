// Measures clock offsets by exchanging messages between rank 0 and every other rank.
#include "comm/clock_offset.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "comm/rank_group_impl.hpp"

namespace scalemark {
namespace {

constexpr int kClockTag = 2;
using Numbers = std::array<double, 3>;

void send(MPI_Comm comm, int peer, const Numbers& numbers) {
  check_mpi(MPI_Send(numbers.data(), numbers.size(), MPI_DOUBLE, peer, kClockTag, comm),
            "MPI_Send");
}

Numbers receive(MPI_Comm comm, int peer) {
  Numbers numbers{};
  check_mpi(MPI_Recv(numbers.data(), numbers.size(), MPI_DOUBLE, peer, kClockTag, comm,
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
  return numbers;
}

/// Asks one peer for its clock, which is the part of rank 0, and sends it the result.
void ask(MPI_Comm comm, int peer, const std::function<double()>& clock, int rounds) {
  double soonest = std::numeric_limits<double>::infinity();
  Numbers offset{};
  for (int i = 0; i < rounds; ++i) {
    const double asked = clock();
    send(comm, peer, {});
    const double answer = receive(comm, peer)[0];
    const double trip = clock() - asked;
    if (trip >= soonest) continue;
    soonest = trip;
    offset = {answer, answer - (asked + trip / 2), trip / 2};
  }
  send(comm, peer, offset);
}

ClockOffset answer(MPI_Comm comm, const std::function<double()>& clock, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    receive(comm, 0);
    send(comm, 0, {clock()});
  }
  const Numbers offset = receive(comm, 0);
  return {offset[0], offset[1], offset[2]};
}

}  // namespace

ClockOffset measure_clock_offset(RankGroup& group, const std::function<double()>& clock,
                                 int rounds) {
  ClockOffset mine{clock(), 0, 0};
  const auto impl = group.impl();
  for (int peer = 1; peer < group.size(); ++peer) {
    group.barrier();  // sleeps until all ranks are at this peer's round
    if (group.rank() != 0 && group.rank() != peer) continue;
    impl->world->call("clock offset", [&] {
      if (group.rank() == 0)
        ask(impl->communicator, peer, clock, rounds);
      else
        mine = answer(impl->communicator, clock, rounds);
    });
  }
  return mine;
}

double ClockAlignment::on_rank_0(double seconds) const {
  const double between = after.measured_at - before.measured_at;
  const double share = between > 0 ? (seconds - before.measured_at) / between : 0;
  return seconds - before.seconds - share * (after.seconds - before.seconds);
}

double ClockAlignment::uncertainty_seconds() const {
  return std::max(before.uncertainty_seconds, after.uncertainty_seconds);
}

}  // namespace scalemark
