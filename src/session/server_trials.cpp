// Serves queries at agreed rates and searches for the highest rate that holds the latency bound.
#include "session/server_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/names.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "record/wire.hpp"
#include "report/console.hpp"

namespace scalemark {
namespace {

/// Returns one rank's share of the queries of a trial.
std::int64_t queries_of_rank(const ResolvedConfig& config, double rate, int ranks) {
  const double queries =
      std::max(static_cast<double>(*config.min_query_count), rate * config.min_duration);
  return static_cast<std::int64_t>(std::ceil(queries / ranks));
}

ServerPolicy policy_of(const ResolvedConfig& config, std::int64_t arrivals, int ranks) {
  ServerPolicy policy;
  policy.largest_batch = *config.batch_size;
  policy.max_queue_delay = config.max_queue_delay_ms / 1e3;
  policy.overload_queue = overload_queue(arrivals, policy.largest_batch);
  if (config.searches_rate()) {  // a trial that is sure to fail need not run to its end
    policy.latency_bound = *config.latency_bound_ms / 1e3;
    policy.late_allowed = static_cast<std::int64_t>((1 - config.latency_quantile) *
                                                    static_cast<double>(arrivals * ranks));
  }
  return policy;
}

/// Combines what all ranks have seen into one trial, which is the same on all of them.
RateTrial agreed_trial(RankGroup& world, const ResolvedConfig& config, double rate, bool confirms,
                       const Samples& mine) {
  RateTrial trial{rate, confirms};
  std::vector<double> latencies;
  for (const std::string& text : world.all_gather(to_wire(mine))) {
    const Samples samples = from_wire<Samples>(text);
    latencies.insert(latencies.end(), samples.step_seconds.begin(), samples.step_seconds.end());
    trial.queries += samples.server->offered;
    trial.seconds = std::max(trial.seconds, samples.wall_seconds);
    if (trial.ended_by == ServerEnd::all_served) trial.ended_by = samples.server->ended_by;
  }
  trial.answered = static_cast<std::int64_t>(latencies.size());
  if (trial.ended_by != ServerEnd::all_served || latencies.empty()) return trial;
  trial.latency = quantile(latencies, config.latency_quantile);
  trial.holds = config.latency_bound_ms && *trial.latency <= *config.latency_bound_ms / 1e3;
  return trial;
}

std::string trial_words(const RateTrial& trial, const ResolvedConfig& config) {
  const std::string how =
      !trial.latency ? fmt::format("ended after {} of {} queries ({})", trial.answered,
                                   trial.queries, to_string(trial.ended_by))
                     : fmt::format("quantile {:g} of {} queries {} ms", config.latency_quantile,
                                   trial.queries, four_digits(1e3 * *trial.latency));
  return fmt::format("{} queries/s: {}: {}{}", four_digits(trial.arrival_rate), how,
                     trial.holds ? "holds" : "does not hold",
                     trial.confirms ? " when repeated" : "");
}

/// Runs the trials of one job.
class Trials {
 public:
  Trials(Session& session, Inferencer& inferencer, const ResolvedConfig& config)
      : session_(session), inferencer_(inferencer), config_(config) {}

  Samples run(double rate) {
    RankGroup& world = session_.world;
    const std::int64_t queries = queries_of_rank(config_, rate, world.size());
    // Streams of queries differ by rank, and from trial to trial.
    const std::uint64_t seed = static_cast<std::uint64_t>(config_.seed) * 1'000'003 +
                               count_++ * static_cast<std::uint64_t>(world.size()) +
                               static_cast<std::uint64_t>(world.rank());
    const double share = rate / world.size();
    const auto arrivals = poisson_arrivals(share, queries, seed);
    world.watchdog().enter("server");
    world.barrier();
    if (count_ == 1) {
      wait_at(session_.start_barrier, world);
      began_ = steady_seconds();
    }
    Samples samples = inferencer_.serve(world, arrivals, policy_of(config_, queries, world.size()));
    samples.server->arrival_rate = share;
    // A rank that ends early waits for the arrivals of the others.
    Watchdog& watchdog = world.watchdog();
    const double timeout = watchdog.timeout();
    watchdog.set_timeout(timeout + std::max(0., arrivals.back() - samples.wall_seconds));
    watchdog.enter("end of a trial");
    world.barrier();
    watchdog.set_timeout(timeout);
    return samples;
  }

  /// Returns the time from the start line to now.
  Window window() const { return {began_, steady_seconds()}; }

  RateSearch search(double first, double lowest, Samples& counts) {
    return search_rate(first, lowest, [&](double rate, bool confirms) -> std::optional<RateTrial> {
      counts = run(rate);
      const bool stopped = counts.stop_reason == StopReason::signal;
      if (session_.world.all_sum({stopped ? 1. : 0.}).front() > 0) {
        counts.stop_reason = StopReason::signal;
        return std::nullopt;
      }
      const RateTrial trial = agreed_trial(session_.world, config_, rate, confirms, counts);
      session_.say(trial_words(trial, config_));
      return trial;
    });
  }

 private:
  Session& session_;
  Inferencer& inferencer_;
  const ResolvedConfig& config_;
  std::uint64_t count_ = 0;
  double began_ = 0;
};

}  // namespace

ServedTrials serve_trials(Session& session, Inferencer& inferencer, const ResolvedConfig& config) {
  RankGroup& world = session.world;
  const Inferencer::PassSeconds mine = inferencer.warm_up_server(world);
  Trials trials(session, inferencer, config);
  ServedTrials served;
  if (config.arrival_rate) {
    served.samples = trials.run(*config.arrival_rate);
  } else {
    const auto sums = world.all_sum({mine.one, mine.full});
    // The search begins at half of the rate that full batches would reach.
    const double first = 0.5 * static_cast<double>(*config.batch_size) * world.size() *
                         world.size() / std::max(sums[1], 1e-6);
    // Even without a queue, the latency cannot be shorter than one pass.
    const bool hopeless = sums[0] / world.size() > *config.latency_bound_ms / 1e3;
    served.search = trials.search(first, hopeless ? first : first / 64, served.samples);
  }
  if (session.start_barrier) session.start_barrier->report(trials.window());
  return served;
}

}  // namespace scalemark
