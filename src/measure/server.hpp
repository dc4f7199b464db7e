// Queries that arrive by themselves and are served as they come: MLPerf Inference's server scenario
// (Reddi et al. 2020, section IV). Latency counts from the scheduled arrival, however late the
// server is, so that a slow answer delays no arrival (no coordinated omission).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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

}  // namespace scalemark
