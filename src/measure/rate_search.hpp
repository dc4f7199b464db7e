// The largest arrival rate that holds a latency bound, by doubling and bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/samples.hpp"

namespace scalemark {

/// One rate that was offered, of all ranks.
struct RateTrial {
  double arrival_rate = 0;  ///< queries per second
  bool confirms = false;    ///< a repeat of a rate that held the bound
  std::int64_t queries = 0, answered = 0;
  double seconds = 0;                  ///< of the slowest rank
  std::optional<double> latency = {};  ///< the bound quantile; unset where the trial ended early
  ServerEnd ended_by = ServerEnd::all_served;  ///< of the rank that ended first
  bool holds = false;
};

/// What a search found and how.
struct RateSearch {
  std::optional<double> found = {};  ///< held the bound, and again when it was repeated
  std::vector<RateTrial> trials = {};
  std::string limited_by = {};  ///< "latency bound", "no rate held it", "trials" or "signal"
};

/// A search ends when the rate that fails is at most this much above the one that holds.
inline constexpr double kRateTolerance = 1.05;

/// From `first` on doubles while the bound holds, or halves down to `lowest` until it does; then
/// takes the geometric mean of the largest that holds and the smallest that fails until they are
/// within kRateTolerance; then repeats the one that holds. Where the repeat fails, so does that
/// rate, and the search goes on below it. `attempt` offers a rate; nullopt ends the search (a
/// signal).
RateSearch search_rate(
    double first, double lowest,
    const std::function<std::optional<RateTrial>(double rate, bool confirms)>& attempt);

}  // namespace scalemark
