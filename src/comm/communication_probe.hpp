// Times and checks collectives over all ranks of a group, with any carrier, and times the link
// between every two hosts, so that a slow link or host can be named. The calls are collective.
// LibTorch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/collective_carrier.hpp"
#include "comm/rank_group.hpp"

namespace scalemark {

/// The times of a collective and the result of its check.
struct CollectiveTiming {
  std::int64_t bytes = 0;  ///< collective_bytes()
  double seconds = 0;      ///< median over repetitions of the rank for which it is longest
  int repetitions = 0;
  std::int64_t wrong_elements = 0;  ///< found by the check, over all ranks
  std::string first_wrong;          ///< "rank 1: element 7 is 12, not 11"; empty: none
};

/// Measures collectives of a group with one carrier.
class CollectiveProbe {
 public:
  /// The group must have at least two ranks. Group and carrier must outlive the probe.
  CollectiveProbe(RankGroup& group, CollectiveCarrier& carrier)
      : group_(group), carrier_(carrier) {}

  /// Runs one untimed collective of known data and compares every element on every rank, then at
  /// least 3 timed ones, one after the other, for about `seconds`. With `corrupt`, this rank
  /// damages one element before the comparison (--inject corrupt_allreduce). Throws CommError, also
  /// for a collective that the carrier lacks.
  CollectiveTiming measure(Collective collective, std::int64_t asked_bytes, double seconds,
                           bool corrupt = false);

 private:
  void fill(Collective collective, std::size_t elements);
  std::string compare(Collective collective, std::size_t elements, std::int64_t& wrong);
  std::vector<double> run(Collective collective, std::size_t elements, int repetitions);
  std::vector<double> of_all_ranks(double mine);

  RankGroup& group_;
  CollectiveCarrier& carrier_;
};

/// The times between ranks `first` < `second` of a group.
struct PairTiming {
  int first = 0, second = 0;
  double latency_seconds = 0;   ///< half of a round trip of 8 bytes, median
  double bytes_per_second = 0;  ///< each way, both sending at once, median
};

/// Returns the rank that rank `rank` of `size` meets in round `round` of pair_rounds(size), in
/// which everybody meets everybody once (the circle method of a round-robin tournament). Returns -1
/// where it meets nobody.
int peer_in_round(int rank, int size, int round);
int pair_rounds(int size);

/// Measures round `round` of the pairs of `group`, which has a rank on each host. Returns the
/// timing of this rank's pair at its lower rank, else an empty list. `bytes` is the size of a
/// message large enough to show the bandwidth; about `seconds` are spent on it. The call is
/// collective over the group. Throws CommError.
std::vector<PairTiming> measure_pair_round(RankGroup& group, int round, std::int64_t bytes,
                                           double seconds);

}  // namespace scalemark
