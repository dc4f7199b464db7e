// Searches for the largest batch that fits, and writes what was tried as JSON.
#include "measure/batch_search.hpp"

#include <algorithm>

namespace scalemark {
namespace {

constexpr std::int64_t kBracketShare = 16;

}  // namespace

BatchSearch bisect_batch(std::int64_t most,
                         const std::function<std::optional<BatchTrial>(std::int64_t)>& attempt) {
  BatchSearch search;
  std::optional<std::int64_t> too_large;
  std::int64_t batch = 1;
  while (true) {
    const auto trial = attempt(batch);
    if (!trial) {
      search.limited_by = "signal";
      return search;
    }
    search.tried.push_back(*trial);
    if (trial->fits)
      search.largest = batch;
    else
      too_large = batch;
    if (!too_large && trial->seconds > kLongestTrialSeconds) {
      search.limited_by = "step time";
      return search;
    }
    if (!too_large && batch == most) {
      search.limited_by = "legal batch sizes";
      return search;
    }
    if (!too_large) {
      batch = std::min(2 * batch, most);
      continue;
    }
    const std::int64_t bracket = *too_large - search.largest;
    if (bracket <= 1 || kBracketShare * bracket <= *too_large || search.largest == 0) break;
    batch = search.largest + bracket / 2;
  }
  search.limited_by = "memory";
  return search;
}

}  // namespace scalemark
