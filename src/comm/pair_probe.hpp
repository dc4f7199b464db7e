// Times the link between every two hosts, so that a slow link or host can be named. LibTorch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/rank_group.hpp"

namespace scalemark {

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
