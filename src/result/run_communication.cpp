// What a step's communication costs, and what the gradients of embedding tables add to it.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "config/names.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// Bytes that the links of all hosts sent, in all (nullopt: not known) and by link. Ranks of one
/// host see the same counters, which are read around warm-up and measured loop.
struct SentBytes {
  std::map<std::string, std::uint64_t> by_host;
  std::map<std::pair<std::string, std::string>, std::uint64_t> by_link;  ///< {host, link}
};
std::optional<SentBytes> sent_bytes(const std::vector<RankReport>& reports) {
  SentBytes sent;
  for (const RankReport& report : reports) {
    if (!report.noise.nic_bytes) return std::nullopt;
    auto& bytes = sent.by_host[report.host];
    bytes = std::max(bytes, *report.noise.nic_bytes);
    for (const auto& [link, of_link] : report.noise.link_bytes) {
      auto& most = sent.by_link[{report.host, link}];
      most = std::max(most, of_link);
    }
  }
  return sent;
}

/// `steps`: of warm-up and measured loop.
void set_links(record::Communication& communication, const std::vector<RankReport>& reports,
               double steps) {
  const auto sent = steps > 0 && !reports.empty() ? sent_bytes(reports) : std::nullopt;
  if (!sent) {
    const Unknown none{"no counters of network interfaces on every host, or no step"};
    communication.nic_bytes_per_step = none;
    communication.links = none;
    return;
  }
  double total = 0;
  for (const auto& [host, bytes] : sent->by_host) total += static_cast<double>(bytes);
  communication.nic_bytes_per_step = total / steps / static_cast<double>(reports.size());
  communication.links.emplace();
  for (const auto& [link, bytes] : sent->by_link)
    if (bytes > 0)
      communication.links->push_back({link.first, link.second, static_cast<double>(bytes) / steps});
}

std::string why_no_exposed(const record::Communication& communication, const RunFacts& facts,
                           const RunMetrics& metrics) {
  if (metrics.step_seconds.empty()) return "no step was completed";
  if (facts.world_size == 1) return "one rank has nothing to communicate";
  return communication.messages_per_step == 0 ? "this run does not communicate" : "";
}

void set_exposed(record::Communication& communication, const RunFacts& facts,
                 const RunMetrics& metrics) {
  if (const std::string why = why_no_exposed(communication, facts, metrics); !why.empty()) {
    communication.total_seconds = communication.exposed_seconds = Unknown{why};
    communication.exposed_method = Unknown{why};
    communication.overlap_fraction = Unknown{why};
    return;
  }
  const Unknown untold{"the communication time is not known: the communicator does not report it"};
  const bool told = metrics.communication > 0;
  communication.total_seconds = told ? Known(metrics.communication) : untold;
  const bool baseline = facts.baseline_step_seconds && metrics.mean_step > 0;
  const double exposed = baseline ? metrics.mean_step - *facts.baseline_step_seconds : metrics.wait;
  const bool known = std::isfinite(exposed);
  communication.exposed_seconds = known ? Known(exposed) : Unknown{kNoWait};
  communication.exposed_method =
      known ? Known<std::string>(baseline ? "baseline" : "wait") : Unknown{kNoWait};
  communication.overlap_fraction =
      told && known ? Known(std::clamp(1.0 - exposed / metrics.communication, 0.0, 1.0)) : untold;
}

/// Returns the means over ranks and steps of each collective.
Known<std::vector<record::CollectiveCost>> collectives_of(
    const record::Communication& communication, const RunFacts& facts,
    const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  if (const std::string why = why_no_exposed(communication, facts, metrics); !why.empty())
    return Unknown{why};
  std::vector<record::CollectiveCost> costs;
  const double share =
      1 / static_cast<double>(metrics.step_seconds.size()) / static_cast<double>(reports.size());
  for (const RankReport& report : reports)
    for (const CollectiveSamples& samples : report.samples.collectives) {
      const std::string name(to_string(samples.collective));
      auto cost = std::ranges::find(costs, name, &record::CollectiveCost::collective);
      if (cost == costs.end())
        cost = costs.insert(cost, record::CollectiveCost{.collective = name});
      cost->messages_per_step += share * samples.messages;
      cost->bytes_per_step += share * samples.bytes;
      cost->total_seconds += share * samples.seconds;
      cost->wait_seconds += share * samples.wait_seconds;
    }
  if (costs.empty()) return Unknown{"the communicator does not tell collectives apart"};
  const std::int64_t divided = communication.shard_ranks ? *communication.shard_ranks : 1;
  // What is divided is scattered and gathered within groups, and summed between them.
  const std::int64_t between = facts.world_size / divided;
  const std::int64_t within = divided == 1 ? facts.world_size : divided;
  for (record::CollectiveCost& cost : costs) {
    const bool sums = cost.collective == "allreduce";
    const auto ranks = static_cast<double>(sums ? between : within);
    cost.wire_bytes_per_step = (sums ? 2 : 1) * cost.bytes_per_step * (ranks - 1) / ranks;
  }
  return costs;
}

/// Mean over ranks and steps.
double mean_of(const std::vector<RankReport>& reports, std::size_t steps,
               double EmbeddingSamples::*sum) {
  double total = 0;
  for (const RankReport& report : reports) total += report.samples.embedding.*sum;
  return total / static_cast<double>(steps) / static_cast<double>(reports.size());
}

/// Rows of a table that a rank collected, mean over ranks and steps.
double mean_rows(const std::vector<RankReport>& reports, std::size_t steps, std::size_t table) {
  double total = 0;
  for (const RankReport& report : reports) total += report.samples.embedding.rows.at(table);
  return total / static_cast<double>(steps) / static_cast<double>(reports.size());
}

std::int64_t whole(double bytes) { return std::llround(bytes); }

/// Sets the rows of tables whose gradients are collected as rows.
void set_rows(record::Embedding& embedding, const std::vector<RankReport>& reports,
              std::size_t steps) {
  double total = 0;
  for (std::size_t i = 0; i < embedding.tables.size(); ++i) {
    embedding.tables[i].rows_per_rank = mean_rows(reports, steps, i);
    total += *embedding.tables[i].rows_per_rank;
  }
  embedding.rows_per_rank = total;
}

Known<double> densify_seconds(const RunFacts& facts, const std::vector<RankReport>& reports,
                              std::size_t steps) {
  if (facts.device != "cpu") return Unknown{"the GPU adds rows while the host goes on"};
  if (facts.embedding->strategy == "dense") return Unknown{"dense gradients are not made of rows"};
  return mean_of(reports, steps, &EmbeddingSamples::densify_seconds);
}

}  // namespace

record::Communication communication_of(const ResolvedConfig& config, const RunFacts& facts,
                                       const std::vector<RankReport>& reports,
                                       const RunMetrics& metrics) {
  const EmbeddingTraffic rows = embedding_traffic(facts, reports, metrics);
  record::Communication communication;
  communication.communicator = facts.communicator;
  communication.transport = known_text(facts.transport);
  communication.algorithm = known_text(facts.algorithm);
  communication.reducer = facts.reducer;
  communication.wire_dtype = facts.wire_dtype;
  communication.overlap = to_string(*config.overlap);
  communication.shard = to_string(config.shard);
  if (config.shard != Shard::none)
    communication.shard_ranks = ranks_of_shards(config, facts.world_size);
  communication.bucket_mb = config.bucket_mb.value_or(default_bucket_mb(facts.device == "cuda"));
  communication.bytes_per_step = facts.bytes_per_step + rows.bytes;
  communication.wire_bytes_per_step = facts.wire_bytes_per_step + rows.wire_bytes;
  communication.messages_per_step = facts.messages_per_step + rows.messages;
  const auto steps = static_cast<double>(metrics.step_seconds.size());
  set_links(communication, reports,
            steps == 0 ? 0 : steps + static_cast<double>(config.num_warmup_batches));
  set_exposed(communication, facts, metrics);
  if (facts.baseline_throughput) communication.baseline_throughput = *facts.baseline_throughput;
  communication.collectives = collectives_of(communication, facts, reports, metrics);
  communication.embedding = embedding_of(facts, reports, metrics);
  return communication;
}

EmbeddingTraffic embedding_traffic(const RunFacts& facts, const std::vector<RankReport>& reports,
                                   const RunMetrics& metrics) {
  const std::size_t steps = metrics.step_seconds.size();
  if (!facts.embedding || steps == 0) return {};
  return {whole(mean_of(reports, steps, &EmbeddingSamples::payload_bytes)),
          whole(mean_of(reports, steps, &EmbeddingSamples::wire_bytes)),
          whole(mean_of(reports, steps, &EmbeddingSamples::messages))};
}

Known<record::Embedding> embedding_of(const RunFacts& facts, const std::vector<RankReport>& reports,
                                      const RunMetrics& metrics) {
  const std::size_t steps = metrics.step_seconds.size();
  if (!facts.embedding) return Unknown{"no gradients of an embedding table"};
  if (steps == 0) return Unknown{"no step was completed"};
  record::Embedding embedding;
  embedding.strategy = facts.embedding->strategy;
  embedding.tied_gradient = facts.embedding->tied_gradient;
  for (const auto& table : facts.embedding->tables)
    embedding.tables.push_back({table.name, table.rows, table.width, table.tied, {}});
  embedding.buffer_bytes_per_rank =
      whole(mean_of(reports, steps, &EmbeddingSamples::gathered_bytes)) +
      facts.embedding->reduced_bytes;
  embedding.wire_bytes_per_step =
      embedding_traffic(facts, reports, metrics).wire_bytes + facts.embedding->reduced_wire_bytes;
  if (embedding.strategy != "dense") set_rows(embedding, reports, steps);
  const double exchange = mean_of(reports, steps, &EmbeddingSamples::exchange_seconds);
  embedding.exchange_seconds =
      exchange > 0 ? Known(exchange)
                   : Unknown{"nothing is exchanged, or the communicator does not report its time"};
  embedding.densify_seconds = densify_seconds(facts, reports, steps);
  return embedding;
}

}  // namespace scalemark
