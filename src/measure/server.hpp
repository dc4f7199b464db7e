// Simulates queries that arrive independently of the answers, as in MLPerf Inference's server
// scenario (Reddi et al. 2020, section IV). Latency counts from the scheduled arrival even if the
// server is late, so that a slow answer delays no arrival (no coordinated omission).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/samples.hpp"

namespace scalemark {

/// Returns the arrival times of a Poisson process of `rate` per second, in seconds from its begin,
/// ascending. They are the sums of exponential gaps.
std::vector<double> poisson_arrivals(double rate, std::int64_t count, std::uint64_t seed);

/// Defines how a server forms batches of the waiting queries.
struct ServerPolicy {
  std::int64_t largest_batch = 1;
  double max_queue_delay = 0;        ///< seconds that the oldest waits for others to fill a batch
  std::int64_t overload_queue = 50;  ///< more than these waiting: the queue grows, the trial ends
  std::optional<double> latency_bound = {};  ///< seconds; with it a trial ends when
  std::int64_t late_allowed = 0;             ///< more than these were later
};

/// Returns the length of the queue from which a server counts as overloaded: a tenth of the
/// arrivals, at least 50 and two batches. A single server that is busy for the share x of its time
/// has n queries waiting with a probability of about exp(-2 (1 - x) n), which is 5e-5 at 0.95 and n
/// = 100.
std::int64_t overload_queue(std::int64_t arrivals, std::int64_t largest_batch);

/// Measures the time of one trial from its begin.
class ServerClock {
 public:
  virtual ~ServerClock() = default;
  virtual double now() = 0;
  /// Waits until `time` or shortly before it.
  virtual void wait(double time) = 0;
};

/// Reads the steady clock from `start` (steady_seconds()) on. It sleeps until shortly before the
/// time and polls the clock for the rest, since a sleeping thread wakes late.
class SteadyServerClock : public ServerClock {
 public:
  explicit SteadyServerClock(double start) : start_(start) {}
  double now() override;
  void wait(double time) override;

 private:
  double start_;
};

/// Serves the arrivals in order and returns their samples. `answer(first, count)` runs the forward
/// pass of these arrivals and waits for its end. `go_on(first)` is asked before each pass and while
/// waiting. Fills step_seconds (latencies), wall_seconds, stop_reason and `server` except for its
/// arrival_rate.
Samples serve(std::span<const double> arrivals, const ServerPolicy& policy, ServerClock& clock,
              const std::function<void(std::size_t first, std::size_t count)>& answer,
              const std::function<bool(std::size_t first)>& go_on);

// Finds the largest arrival rate that holds a latency bound by doubling and bisection.

/// The outcome of one offered rate over all ranks.
struct RateTrial {
  double arrival_rate = 0;  ///< queries per second
  bool confirms = false;    ///< a repeat of a rate that held the bound
  std::int64_t queries = 0, answered = 0;
  double seconds = 0;                  ///< seconds of the slowest rank
  std::optional<double> latency = {};  ///< the bound quantile; unset where the trial ended early
  ServerEnd ended_by = ServerEnd::all_served;  ///< reason of the rank that ended first
  bool holds = false;
};

/// The result of a search, with all rates that were offered.
struct RateSearch {
  std::optional<double> found = {};  ///< held the bound, and again when it was repeated
  std::vector<RateTrial> trials = {};
  std::string limited_by = {};  ///< "latency bound", "no rate held it", "trials" or "signal"
};

/// A search ends when the rate that fails exceeds the one that holds by at most this factor.
inline constexpr double kRateTolerance = 1.05;

/// Doubles the rate from `first` while the bound holds, or halves it down to `lowest` until it
/// does. Then it takes the geometric mean of the largest rate that holds and the smallest that
/// fails until they are within kRateTolerance, and repeats the rate that holds. Where the repeat
/// fails, that rate counts as failed and the search continues below it. `attempt` offers a rate; it
/// returns nullopt to end the search, for example after a signal.
RateSearch search_rate(
    double first, double lowest,
    const std::function<std::optional<RateTrial>(double rate, bool confirms)>& attempt);

}  // namespace scalemark
