// The largest batch that fits, by doubling and bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// One batch size that was tried, of all ranks.
struct BatchTrial {
  std::int64_t batch_size = 0;  ///< samples per rank
  bool fits = false;            ///< on every rank
  double seconds = 0;           ///< of the step on the slowest rank; until it failed
  std::int64_t peak_bytes = 0;  ///< of the largest rank
};

/// What a search found and how.
struct BatchSearch {
  std::int64_t largest = 0;  ///< the largest that fits, samples per rank; 0: none
  std::vector<BatchTrial> tried = {};
  std::optional<std::int64_t> limit_bytes = {};  ///< of the rank that may take least
  std::string limited_by = {};  ///< "memory", "step time", "legal batch sizes" or "signal"
};

/// Seconds of a step after which a search looks for no larger batch.
inline constexpr double kLongestTrialSeconds = 30;

/// Doubles from 1 until a batch does not fit, takes longer than kLongestTrialSeconds or is `most`;
/// after one that does not fit bisects until the bracket (fits, does not fit) is at most 1/16 of
/// its upper end, or 1. `attempt` says how a batch fared; nullopt ends the search (a signal).
BatchSearch bisect_batch(std::int64_t most,
                         const std::function<std::optional<BatchTrial>(std::int64_t)>& attempt);

}  // namespace scalemark
