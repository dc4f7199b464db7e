// Times and checks collectives over all ranks of a group, with any carrier. Its calls are
// collective. LibTorch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/collective_carrier.hpp"

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

}  // namespace scalemark
