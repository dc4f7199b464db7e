// Whether the launches of a sweep show which of its points is the fastest.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/compare/repeats.hpp"

namespace scalemark {

struct Fastest {
  std::size_t point = 0;  ///< of the largest mean
  /// Faster than each other point, tested as scalemark compare does, at 5 % over all of them
  /// (Bonferroni: which point is tested was chosen by the same launches).
  bool shown = false;
  double p = 1;                    ///< the largest of these tests, times their number, at most 1
  std::size_t as_fast = 0;         ///< other points that may be as fast
  std::size_t repeats_needed = 0;  ///< from which on the launches could show it
  bool too_few = false;            ///< there are not so many
};

/// `points`: throughputs of the launches of each. Those without launches take no part; nullopt
/// where fewer than two do.
std::optional<Fastest> find_fastest(const std::vector<Repeats>& points);

}  // namespace scalemark
