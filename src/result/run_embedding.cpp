// The part of a run record that speaks of embedding gradients: what each table costs to accumulate.
#include <cmath>

#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// Mean over ranks and steps.
double mean_of(const std::vector<RankReport>& reports, std::size_t steps,
               double EmbeddingSamples::*sum) {
  double total = 0;
  for (const RankReport& report : reports) total += report.samples.embedding.*sum;
  return total / static_cast<double>(steps) / static_cast<double>(reports.size());
}

/// Rows of a table that a rank collected, likewise.
double mean_rows(const std::vector<RankReport>& reports, std::size_t steps, std::size_t table) {
  double total = 0;
  for (const RankReport& report : reports) total += report.samples.embedding.rows.at(table);
  return total / static_cast<double>(steps) / static_cast<double>(reports.size());
}

std::int64_t whole(double bytes) { return std::llround(bytes); }

Json table_json(const EmbeddingFacts::Table& table) {
  return {{"name", table.name},
          {"rows", table.rows},
          {"width", table.width},
          {"tied", table.tied},
          {"rows_per_rank", nullptr}};
}

void fill_rows(Json& record, const EmbeddingFacts& facts, const std::vector<RankReport>& reports,
               std::size_t steps) {
  Json& embedding = record["communication"]["embedding"];
  if (facts.strategy == "dense") {
    for (const char* key : {"rows_per_rank", "tables.rows_per_rank"})
      record["unavailable"][std::string("communication.embedding.") + key] =
          "dense gradients are not collected as rows";
    return;
  }
  double total = 0;
  for (std::size_t i = 0; i < facts.tables.size(); ++i) {
    const double rows = mean_rows(reports, steps, i);
    embedding["tables"][i]["rows_per_rank"] = rows;
    total += rows;
  }
  embedding["rows_per_rank"] = total;
}

}  // namespace

EmbeddingTraffic embedding_traffic(const RunFacts& facts, const std::vector<RankReport>& reports,
                                   const RunMetrics& metrics) {
  const std::size_t steps = metrics.step_seconds.size();
  if (!facts.embedding || steps == 0) return {};
  return {whole(mean_of(reports, steps, &EmbeddingSamples::payload_bytes)),
          whole(mean_of(reports, steps, &EmbeddingSamples::wire_bytes)),
          whole(mean_of(reports, steps, &EmbeddingSamples::messages))};
}

void fill_embedding(Json& record, const RunFacts& facts, const std::vector<RankReport>& reports,
                    const RunMetrics& metrics) {
  const std::string path = "communication.embedding";
  const std::size_t steps = metrics.step_seconds.size();
  if (!facts.embedding) return set_unavailable(record, path, "no gradients of an embedding table");
  if (steps == 0) return set_unavailable(record, path, "no step was completed");
  Json tables = Json::array();
  for (const auto& table : facts.embedding->tables) tables.push_back(table_json(table));
  const double gathered = mean_of(reports, steps, &EmbeddingSamples::gathered_bytes);
  const EmbeddingTraffic traffic = embedding_traffic(facts, reports, metrics);
  record["communication"]["embedding"] = {
      {"strategy", facts.embedding->strategy},
      {"tied_gradient", facts.embedding->tied_gradient},
      {"tables", std::move(tables)},
      {"rows_per_rank", nullptr},
      {"buffer_bytes_per_rank", whole(gathered) + facts.embedding->reduced_bytes},
      {"wire_bytes_per_step", traffic.wire_bytes + facts.embedding->reduced_wire_bytes}};
  fill_rows(record, *facts.embedding, reports, steps);
  const double exchange = mean_of(reports, steps, &EmbeddingSamples::exchange_seconds);
  set_number(record, path + ".exchange_seconds",
             exchange > 0 ? std::optional(exchange) : std::nullopt,
             "nothing is exchanged, or the communicator does not report its time");
  const double densify = mean_of(reports, steps, &EmbeddingSamples::densify_seconds);
  const bool timed = facts.device == "cpu" && facts.embedding->strategy != "dense";
  set_number(record, path + ".densify_seconds", timed ? std::optional(densify) : std::nullopt,
             facts.device == "cpu" ? "dense gradients are not made of rows"
                                   : "the GPU adds rows while the host goes on");
}

}  // namespace scalemark
