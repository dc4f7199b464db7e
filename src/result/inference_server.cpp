// The part of an inference record that speaks of queries that arrive by themselves.
#include <algorithm>
#include <numeric>

#include "config/names.hpp"
#include "result/inference_record.hpp"

namespace scalemark {
namespace {

/// What the servers of all ranks did, one rank after the other.
struct Served {
  std::vector<double> latency, queue, service, lateness;
  double arrival_rate = 0, wall_seconds = 0;
  std::int64_t offered = 0, batches = 0, queue_length_max = 0;
  ServerEnd ended_by = ServerEnd::all_served;
};

Served served_by(const std::vector<RankReport>& reports) {
  Served all;
  for (const RankReport& report : reports) {
    const Samples& samples = report.samples;
    const ServerSamples& server = *samples.server;
    for (std::size_t i = 0; i < samples.step_seconds.size(); ++i) {
      all.latency.push_back(samples.step_seconds[i]);
      all.queue.push_back(server.queue_seconds.at(i));
      all.service.push_back(samples.step_seconds[i] - server.queue_seconds[i]);
    }
    all.lateness.insert(all.lateness.end(), server.timer_lateness.begin(),
                        server.timer_lateness.end());
    all.arrival_rate += server.arrival_rate;
    all.wall_seconds = std::max(all.wall_seconds, samples.wall_seconds);
    all.offered += server.offered;
    all.batches += server.batches;
    all.queue_length_max = std::max(all.queue_length_max, server.queue_length_max);
    if (all.ended_by == ServerEnd::all_served) all.ended_by = server.ended_by;
  }
  return all;
}

/// The latency at the quantile, and whether it holds the bound.
void set_verdict(record::Server& server, const ResolvedConfig& config, const Served& served) {
  const double q = config.latency_quantile;
  const auto least = static_cast<std::size_t>(queries_for_quantile(q));
  const bool whole = served.ended_by == ServerEnd::all_served;
  Known<double>& latency = server.latency_at_quantile_seconds;
  if (!whole)
    latency = Unknown{server_end_reason(served.ended_by)};
  else if (served.latency.size() < least)
    latency = Unknown{"fewer than " + std::to_string(least) + " queries (--min_query_count)"};
  else
    latency = quantile(served.latency, q);
  if (!config.latency_bound_ms) return;
  server.latency_bound_seconds = *config.latency_bound_ms / 1e3;
  if (!whole)
    server.holds = false;
  else if (latency)
    server.holds = *latency <= *server.latency_bound_seconds;
  else
    server.holds = Unknown{"the latency at the quantile is not known"};
}

record::TimerLateness lateness_of(const std::vector<double>& lateness) {
  record::TimerLateness timer;
  timer.waits = static_cast<std::int64_t>(lateness.size());
  if (lateness.empty()) return timer;
  timer.mean = mean(lateness);
  timer.max = std::ranges::max(lateness);
  return timer;
}

record::ArrivalRateSearch search_of(const RateSearch& search) {
  record::ArrivalRateSearch found;
  found.found = {search.found, "limited by: " + search.limited_by};
  found.limited_by = search.limited_by;
  found.tolerance = kRateTolerance - 1;
  for (const RateTrial& trial : search.trials)
    found.trials.push_back({trial.arrival_rate,
                            trial.confirms,
                            trial.queries,
                            trial.answered,
                            trial.seconds,
                            {trial.latency, ""},
                            trial.ended_by,
                            trial.holds});
  return found;
}

}  // namespace

std::string server_end_reason(ServerEnd end) {
  switch (end) {
    case ServerEnd::all_served:
      return "";
    case ServerEnd::overload:
      return "the server was overloaded: the queue grew, and latency with it, until the trial was "
             "ended";
    case ServerEnd::late:
      break;
  }
  return "more queries were late than the bound allows, and the trial was ended";
}

Known<record::Server> server_of(const ResolvedConfig& config, const InferenceFacts& facts,
                                const std::vector<RankReport>& reports) {
  if (config.mode != InferenceMode::server) return Unknown{"--mode server was not asked for"};
  const bool tried = std::ranges::all_of(
      reports, [](const RankReport& report) { return report.samples.server.has_value(); });
  const Served served = tried ? served_by(reports) : Served{};
  if (served.latency.empty()) return Unknown{"no query was answered"};
  const auto answered = static_cast<double>(served.latency.size());
  record::Server server;
  server.arrival_rate = served.arrival_rate;
  server.achieved_rate = answered / served.wall_seconds;
  server.queries_offered = served.offered;
  server.latency_quantile = config.latency_quantile;
  server.ended_by = served.ended_by;
  server.batch_size_mean = answered / static_cast<double>(served.batches);
  set_verdict(server, config, served);
  const QuantileRule rule = server_quantiles(served.ended_by);
  server.queue_seconds = quantiles_of(served.queue, rule);
  server.service_seconds = quantiles_of(served.service, rule);
  const double waited = std::accumulate(served.queue.begin(), served.queue.end(), 0.);
  server.queue_length = {waited / served.wall_seconds, served.queue_length_max};  // Little's law
  server.timer_lateness_seconds = lateness_of(served.lateness);
  if (facts.rate_search) server.search = search_of(*facts.rate_search);
  return server;
}

}  // namespace scalemark
