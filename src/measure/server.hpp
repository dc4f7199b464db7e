// Queries that arrive by themselves and are served as they come: MLPerf Inference's server scenario
// (Reddi et al. 2020, section IV). Latency counts from the scheduled arrival, however late the
// server is, so that a slow answer delays no arrival (no coordinated omission).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/samples.hpp"

namespace scalemark {

/// Arrivals of a Poisson process of `rate` per second, seconds from its begin, ascending: the sums
/// of exponential gaps.
std::vector<double> poisson_arrivals(double rate, std::int64_t count, std::uint64_t seed);

/// What a server does with those who wait.
struct ServerPolicy {
  std::int64_t largest_batch = 1;
  double max_queue_delay = 0;        ///< seconds that the oldest waits for others to fill a batch
  std::int64_t overload_queue = 50;  ///< more than these waiting: the queue grows, the trial ends
  std::optional<double> latency_bound = {};  ///< seconds; with it a trial ends when
  std::int64_t late_allowed = 0;             ///< more than these were later
};

/// A tenth of the arrivals, at least 50 and two batches. A single server that is busy for the share
/// x of its time has n waiting with a chance of about exp(-2 (1 - x) n): 5e-5 at 0.95 and n = 100.
std::int64_t overload_queue(std::int64_t arrivals, std::int64_t largest_batch);

/// Time of one trial, from its begin.
class ServerClock {
 public:
  virtual ~ServerClock() = default;
  virtual double now() = 0;
  /// Until `time`, or a while less.
  virtual void wait(double time) = 0;
};

/// The steady clock from `start` (steady_seconds()) on. Sleeps until shortly before the time and
/// reads the clock for the rest, since a sleeper wakes late.
class SteadyServerClock : public ServerClock {
 public:
  explicit SteadyServerClock(double start) : start_(start) {}
  double now() override;
  void wait(double time) override;

 private:
  double start_;
};

/// `answer(first, count)`: the forward pass of these arrivals, waited for. `go_on(first)`: asked
/// before each pass, and while waiting. Fills step_seconds (latencies), wall_seconds, stop_reason
/// and `server`, but for its arrival_rate.
Samples serve(std::span<const double> arrivals, const ServerPolicy& policy, ServerClock& clock,
              const std::function<void(std::size_t first, std::size_t count)>& answer,
              const std::function<bool(std::size_t first)>& go_on);

// The largest arrival rate that holds a latency bound, by doubling and bisection.

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
