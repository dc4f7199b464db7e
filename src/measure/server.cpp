// Draws arrivals, forms batches and serves them as a single server.
#include "measure/server.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "measure/clock.hpp"

namespace scalemark {
namespace {

constexpr double kSpinSeconds = 2e-4;  ///< a timer's slack, and a wake-up
constexpr double kLongestSleep = 0.1;  ///< a stop is heard as soon

std::size_t arrived(std::span<const double> arrivals, double now) {
  return static_cast<std::size_t>(std::ranges::upper_bound(arrivals, now) - arrivals.begin());
}

/// Returns the time at which the batch that begins with arrival `first` is full or its oldest query
/// has waited long enough.
double batch_deadline(std::span<const double> arrivals, std::size_t first,
                      const ServerPolicy& policy) {
  const double patience = arrivals[first] + policy.max_queue_delay;
  const std::size_t last = first + static_cast<std::size_t>(policy.largest_batch) - 1;
  return last < arrivals.size() ? std::min(patience, arrivals[last]) : patience;
}

}  // namespace

std::vector<double> poisson_arrivals(double rate, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> arrivals;
  double time = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;  // in [0, 1)
    arrivals.push_back(time -= std::log1p(-uniform) / rate);
  }
  return arrivals;
}

std::int64_t overload_queue(std::int64_t arrivals, std::int64_t largest_batch) {
  return std::max<std::int64_t>({arrivals / 10, 50, 2 * largest_batch});
}

double SteadyServerClock::now() { return steady_seconds() - start_; }

void SteadyServerClock::wait(double time) {
  const double sleep = std::min(time - now() - kSpinSeconds, kLongestSleep);
  if (sleep > 0) std::this_thread::sleep_for(std::chrono::duration<double>(sleep));
  if (time - now() > kSpinSeconds) return;
  while (now() < time) {
  }
}

Samples serve(std::span<const double> arrivals, const ServerPolicy& policy, ServerClock& clock,
              const std::function<void(std::size_t first, std::size_t count)>& answer,
              const std::function<bool(std::size_t first)>& go_on) {
  Samples samples;
  ServerSamples& server = samples.server.emplace();
  server.offered = static_cast<std::int64_t>(arrivals.size());
  std::int64_t late = 0;
  const auto wait = [&](std::size_t first, double time) {  // false: stop serving
    bool goes_on = go_on(first);
    for (; goes_on && clock.now() < time; goes_on = go_on(first)) clock.wait(time);
    return goes_on;
  };
  for (std::size_t next = 0; next < arrivals.size();) {
    const bool idle = clock.now() < arrivals[next];
    bool goes_on = wait(next, arrivals[next]);
    if (goes_on && idle) server.timer_lateness.push_back(clock.now() - arrivals[next]);
    goes_on = goes_on && wait(next, batch_deadline(arrivals, next, policy));
    if (!goes_on) samples.stop_reason = StopReason::signal;
    const double start = clock.now();
    const auto waiting = static_cast<std::int64_t>(arrived(arrivals, start) - next);
    server.queue_length_max = std::max(server.queue_length_max, waiting);
    if (waiting > policy.overload_queue) server.ended_by = ServerEnd::overload;
    if (!goes_on || server.ended_by != ServerEnd::all_served) break;

    const auto count = static_cast<std::size_t>(std::min(waiting, policy.largest_batch));
    answer(next, count);
    const double done = clock.now();
    ++server.batches;
    for (const std::size_t end = next + count; next < end; ++next) {
      server.queue_seconds.push_back(start - arrivals[next]);
      samples.step_seconds.push_back(done - arrivals[next]);
      if (policy.latency_bound && done - arrivals[next] > *policy.latency_bound) ++late;
    }
    if (policy.latency_bound && late > policy.late_allowed && next < arrivals.size()) {
      server.ended_by = ServerEnd::late;
      break;
    }
  }
  samples.wall_seconds = clock.now();
  return samples;
}

namespace {

constexpr std::size_t kMostTrials = 40;

/// Holds the rates that held and those that failed. `held` is ascending.
struct Bracket {
  std::vector<double> held = {};
  std::optional<double> fails = {};

  /// Returns the next rate to offer. Returns nullopt where the largest rate that held is to be
  /// confirmed, or where none holds.
  std::optional<double> next(double first, double lowest) const {
    if (held.empty() && !fails) return first;
    if (!fails) return 2 * held.back();
    if (held.empty()) return *fails / 2 < lowest ? std::nullopt : std::optional(*fails / 2);
    if (*fails <= kRateTolerance * held.back()) return std::nullopt;
    return std::sqrt(held.back() * *fails);
  }
};

}  // namespace

RateSearch search_rate(
    double first, double lowest,
    const std::function<std::optional<RateTrial>(double rate, bool confirms)>& attempt) {
  RateSearch search;
  Bracket bracket;
  while (search.trials.size() < kMostTrials) {
    const std::optional<double> rate = bracket.next(first, lowest);
    if (!rate && bracket.held.empty()) {
      search.limited_by = "no rate held it";
      return search;
    }
    const auto trial = attempt(rate ? *rate : bracket.held.back(), !rate);
    if (!trial) {
      search.limited_by = "signal";
      return search;
    }
    search.trials.push_back(*trial);
    if (rate && trial->holds) bracket.held.push_back(*rate);
    if (rate && !trial->holds) bracket.fails = *rate;
    if (rate) continue;
    if (trial->holds) {
      search.found = bracket.held.back();
      search.limited_by = "latency bound";
      return search;
    }
    bracket.fails = bracket.held.back();
    bracket.held.pop_back();
  }
  search.limited_by = "trials";
  return search;
}

}  // namespace scalemark
