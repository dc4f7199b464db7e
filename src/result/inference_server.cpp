// The part of an inference record that speaks of queries that arrive by themselves.
#include <algorithm>
#include <numeric>

#include "config/names.hpp"
#include "result/inference_record.hpp"

namespace scalemark {
namespace {

/// Of all ranks, one after the other.
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

/// `server.latency_at_quantile_seconds` and whether it holds the bound.
void fill_verdict(Json& record, const ResolvedConfig& config, const Served& served) {
  const double q = config.latency_quantile;
  const auto least = static_cast<std::size_t>(queries_for_quantile(q));
  const bool whole = served.ended_by == ServerEnd::all_served;
  std::optional<double> latency;
  if (whole && served.latency.size() >= least) latency = quantile(served.latency, q);
  set_number(record, "server.latency_at_quantile_seconds", latency,
             whole ? "fewer than " + std::to_string(least) + " queries (--min_query_count)"
                   : server_end_reason(served.ended_by));
  Json& holds = record["server"]["holds"];
  if (!config.latency_bound_ms) {
    set_unavailable(record, "server.latency_bound_seconds", "--latency_bound_ms was not given");
    return set_unavailable(record, "server.holds", "--latency_bound_ms was not given");
  }
  const double bound = *config.latency_bound_ms / 1e3;
  record["server"]["latency_bound_seconds"] = bound;
  if (!whole)
    holds = false;
  else if (latency)
    holds = *latency <= bound;
  else
    set_unavailable(record, "server.holds", "the latency at the quantile is not known");
}

void fill_lateness(Json& record, const std::vector<double>& lateness) {
  record["server"]["timer_lateness_seconds"] = {{"waits", lateness.size()}};
  const auto some = [&](double value) {
    return lateness.empty() ? std::nullopt : std::optional(value);
  };
  const std::string reason = "the server was never idle";
  set_number(record, "server.timer_lateness_seconds.mean",
             some(lateness.empty() ? 0 : mean(lateness)), reason);
  set_number(record, "server.timer_lateness_seconds.max",
             some(lateness.empty() ? 0 : std::ranges::max(lateness)), reason);
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

void fill_server(Json& record, const ResolvedConfig& config, const InferenceFacts& facts,
                 const std::vector<RankReport>& reports) {
  if (config.mode != InferenceMode::server)
    return set_unavailable(record, "server", "--mode server was not asked for");
  const bool tried = std::ranges::all_of(
      reports, [](const RankReport& report) { return report.samples.server.has_value(); });
  const Served served = tried ? served_by(reports) : Served{};
  if (served.latency.empty()) return set_unavailable(record, "server", "no query was answered");
  const auto answered = static_cast<double>(served.latency.size());
  record["server"] = {{"arrival_rate", served.arrival_rate},
                      {"achieved_rate", answered / served.wall_seconds},
                      {"queries_offered", served.offered},
                      {"latency_quantile", config.latency_quantile},
                      {"latency_at_quantile_seconds", nullptr},
                      {"latency_bound_seconds", nullptr},
                      {"holds", nullptr},
                      {"ended_by", to_string(served.ended_by)},
                      {"batch_size_mean", answered / static_cast<double>(served.batches)}};
  fill_verdict(record, config, served);
  const QuantileRule rule = server_quantiles(served.ended_by);
  fill_quantiles(record, "server.queue_seconds", served.queue, rule);
  fill_quantiles(record, "server.service_seconds", served.service, rule);
  const double waited = std::accumulate(served.queue.begin(), served.queue.end(), 0.);
  record["server"]["queue_length"] = {{"mean", waited / served.wall_seconds},  // Little's law
                                      {"max", served.queue_length_max}};
  fill_lateness(record, served.lateness);
  if (facts.rate_search) {
    record["server"]["search"] = to_json(*facts.rate_search);
    explain_nulls(record, "server.search.found", "limited by: " + facts.rate_search->limited_by);
    explain_nulls(record, "server.search.trials.latency_seconds", "a trial ended early");
  } else {
    set_unavailable(record, "server.search", "--arrival_rate was given");
  }
}

}  // namespace scalemark
