// Finds the largest batch that fits by doubling and bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// The outcome of one batch size that was tried on all ranks.
struct BatchTrial {
  std::int64_t batch_size = 0;  ///< samples per rank
  bool fits = false;            ///< on every rank
  double seconds = 0;           ///< seconds of the step on the slowest rank, or until it failed
  std::int64_t peak_bytes = 0;  ///< largest peak memory of any rank
};

/// The result of a search, with all batch sizes that were tried.
struct BatchSearch {
  std::int64_t largest = 0;  ///< the largest that fits, samples per rank; 0: none
  std::vector<BatchTrial> tried = {};
  std::optional<std::int64_t> limit_bytes = {};  ///< least memory limit of any rank
  std::string limited_by = {};  ///< "memory", "step time", "legal batch sizes" or "signal"
};

/// A search looks for no larger batch once a step takes this many seconds.
inline constexpr double kLongestTrialSeconds = 30;

/// Doubles the batch from 1 until it does not fit, its step takes longer than kLongestTrialSeconds
/// or it reaches `most`. After a batch that does not fit, it bisects until the bracket (fits, does
/// not fit) is at most 1/16 of its upper end, or 1. `attempt` tries one batch; it returns nullopt
/// to end the search, for example after a signal.
BatchSearch bisect_batch(std::int64_t most,
                         const std::function<std::optional<BatchTrial>(std::int64_t)>& attempt);

}  // namespace scalemark
