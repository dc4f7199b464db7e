// See collective_probe.hpp.
#include "comm/collective_probe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/rank_group_impl.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

// A prime, so that blocks of a power of two elements begin with different values. Sums of 0..250
// are exact in fp32 on up to 67,000 ranks.
constexpr std::size_t kPeriod = 251;
constexpr int kFewestRepetitions = 3, kMostRepetitions = 10'000;

/// Element i of what rank `from` sends to rank `to` (0 where all get the same).
float value(std::size_t from, std::size_t to, std::size_t i) {
  return static_cast<float>((31 * from + 17 * to + i) % kPeriod);
}

std::vector<float> sums(std::size_t ranks) {
  std::vector<float> table(kPeriod, 0.f);
  for (std::size_t i = 0; i < kPeriod; ++i)
    for (std::size_t rank = 0; rank < ranks; ++rank) table[i] += value(rank, 0, i);
  return table;
}

void call_mpi(Collective collective, MPI_Comm comm, const std::vector<float>& sent,
              std::vector<float>& received, int elements, int block) {
  float* const to = received.data();
  switch (collective) {
    case Collective::allreduce:
      return check_mpi(MPI_Allreduce(MPI_IN_PLACE, to, elements, MPI_FLOAT, MPI_SUM, comm),
                       "MPI_Allreduce");
    case Collective::allgather:
      return check_mpi(MPI_Allgather(sent.data(), block, MPI_FLOAT, to, block, MPI_FLOAT, comm),
                       "MPI_Allgather");
    case Collective::alltoall:
      return check_mpi(MPI_Alltoall(sent.data(), block, MPI_FLOAT, to, block, MPI_FLOAT, comm),
                       "MPI_Alltoall");
    case Collective::broadcast:
      break;
  }
  check_mpi(MPI_Bcast(to, elements, MPI_FLOAT, 0, comm), "MPI_Bcast");
}

}  // namespace

CollectiveProbe::CollectiveProbe(RankGroup& group, std::int64_t largest)
    : group_(group),
      communicator_(make_communicator(CommunicatorKind::mpi, group, -1)),
      sent_(static_cast<std::size_t>(collective_bytes(Collective::alltoall, largest, group.size()) /
                                     4)),
      received_(std::max(sent_.size(), static_cast<std::size_t>(largest / 4))) {}

std::vector<double> CollectiveProbe::of_all_ranks(double mine) {
  std::vector<double> values(static_cast<std::size_t>(group_.size()), 0.);
  values[static_cast<std::size_t>(group_.rank())] = mine;
  return group_.all_sum(std::move(values));
}

void CollectiveProbe::fill(Collective collective, std::size_t elements) {
  const auto rank = static_cast<std::size_t>(group_.rank());
  const std::size_t block = elements / static_cast<std::size_t>(group_.size());
  std::fill_n(received_.begin(), elements, -1.f);
  switch (collective) {
    case Collective::allreduce:
      for (std::size_t i = 0; i < elements; ++i) received_[i] = value(rank, 0, i);
      return;
    case Collective::allgather:
      for (std::size_t i = 0; i < block; ++i) sent_[i] = value(rank, 0, i);
      return;
    case Collective::alltoall:
      for (std::size_t i = 0; i < elements; ++i) sent_[i] = value(rank, i / block, i % block);
      return;
    case Collective::broadcast:
      break;
  }
  if (rank == 0)
    for (std::size_t i = 0; i < elements; ++i) received_[i] = value(0, 0, i);
}

std::string CollectiveProbe::compare(Collective collective, std::size_t elements,
                                     std::int64_t& wrong) const {
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
        break;
    }
    return value(0, 0, i);
  };
  std::string first;
  for (std::size_t i = 0; i < elements; ++i) {
    if (received_[i] == right(i)) continue;
    if (wrong++ == 0)
      first = fmt::format("rank {}: element {} is {}, not {}", rank, i, received_[i], right(i));
  }
  return first;
}

/// One behind the other, each timed on this rank.
std::vector<double> CollectiveProbe::run(Collective collective, Carrier carrier, std::int64_t bytes,
                                         int repetitions) {
  const auto elements = static_cast<int>(bytes / 4);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(repetitions));
  group_.barrier();
  if (carrier == Carrier::scalemark) {
    const Buffer buffer{received_.data(), static_cast<std::size_t>(elements), DataType::f32};
    for (int i = 0; i < repetitions; ++i) {
      const double start = steady_seconds();
      communicator_->allreduce(buffer);
      seconds.push_back(steady_seconds() - start);
    }
    return seconds;
  }
  const auto impl = group_.impl();
  impl->world->call("collective", [&] {
    for (int i = 0; i < repetitions; ++i) {
      const double start = steady_seconds();
      call_mpi(collective, impl->communicator, sent_, received_, elements,
               elements / group_.size());
      seconds.push_back(steady_seconds() - start);
    }
  });
  return seconds;
}

CollectiveTiming CollectiveProbe::measure(Collective collective, Carrier carrier,
                                          std::int64_t asked_bytes, double seconds, bool corrupt) {
  if (carrier == Carrier::scalemark && collective != Collective::allreduce)
    throw CommError(
        fmt::format("collective probe: there is no {} but MPI's", to_string(collective)));
  CollectiveTiming timing;
  timing.bytes = collective_bytes(collective, asked_bytes, group_.size());
  const auto elements = static_cast<std::size_t>(timing.bytes / 4);
  fill(collective, elements);
  const double first = run(collective, carrier, timing.bytes, 1).front();
  if (corrupt) received_[elements / 2] += 1;
  std::int64_t wrong = 0;
  const std::string message = compare(collective, elements, wrong);
  for (const double of_rank : of_all_ranks(static_cast<double>(wrong)))
    timing.wrong_elements += static_cast<std::int64_t>(of_rank);
  if (timing.wrong_elements > 0)
    for (const std::string& text : group_.all_gather(message))
      if (timing.first_wrong.empty()) timing.first_wrong = text;

  // Sums of sums would overflow; zeros stay zeros.
  std::fill(received_.begin(), received_.end(), 0.f);
  const double longest = std::ranges::max(of_all_ranks(first));
  timing.repetitions = static_cast<int>(std::clamp(
      seconds / std::max(longest, 1e-7), double{kFewestRepetitions}, double{kMostRepetitions}));
  const auto times = run(collective, carrier, timing.bytes, timing.repetitions);
  timing.seconds = std::ranges::max(of_all_ranks(median(times)));
  return timing;
}

}  // namespace scalemark
