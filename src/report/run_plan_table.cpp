// Prints the plan that --dry_run shows.
#include <fmt/format.h>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"

namespace scalemark {
namespace {

std::string gibibytes(double bytes) { return fmt::format("{:.2f} GiB", bytes / (1 << 30)); }

std::vector<std::string> row(const PointPlan& plan) {
  std::vector<std::string> cells{
      std::to_string(plan.ranks),
      std::to_string(plan.batch.batch_size_per_rank),
      fmt::format("{} x {}", plan.batch.micro_batches(), plan.batch.micro_batch_size),
      fmt::format("{:.0f}", plan.units_per_step),
      gibibytes(static_cast<double>(plan.weight_bytes + plan.shadow_bytes + plan.kept_bytes +
                                    plan.gathered_bytes)),
      gibibytes(static_cast<double>(plan.gradient_bytes + plan.scattered_bytes)),
      plan.embedding.buffer_bytes() > 0
          ? gibibytes(static_cast<double>(plan.embedding.buffer_bytes()))
          : "none",
      gibibytes(static_cast<double>(plan.optimizer_bytes)),
      plan.activation_bytes > 0 ? gibibytes(plan.activation_bytes) : "unknown",
      gibibytes(plan.memory_bytes()),
      gibibytes(static_cast<double>(plan.wire_bytes_per_step))};
  if (plan.fits) cells.emplace_back(*plan.fits ? "yes" : "no");
  return cells;
}

/// Returns a line for every collective of every point that has several.
std::string collectives_text(const std::vector<PointPlan>& points) {
  std::vector<std::vector<std::string>> rows{
      {"ranks", "collective", "messages/step", "payload/step", "sent/step"}};
  for (const PointPlan& point : points)
    for (const CollectivePlan& one : point.collectives)
      rows.push_back({std::to_string(point.ranks), std::string(to_string(one.collective)),
                      std::to_string(one.messages), gibibytes(static_cast<double>(one.bytes)),
                      gibibytes(static_cast<double>(one.wire_bytes))});
  return rows.size() > 1 ? "\n" + text_table(rows) : "";
}

std::string curve_text(const CurvePlan& plan) {
  const ResolvedConfig& config = plan.config;
  const ModelFacts facts = *find_model(config.model);
  const std::string counted(facts.unit.substr(0, facts.unit.find('/')));
  std::vector<std::vector<std::string>> rows{{"ranks", "batch", "micro-batches", counted + "/step",
                                              "weights", "gradients", "embeddings", "optimizer",
                                              "activations", "memory", "sent/step"}};
  if (!plan.points.empty() && plan.points.front().fits)
    rows.front().push_back(fmt::format("fits in {:g} GiB", *config.device_memory));
  for (const PointPlan& point : plan.points) rows.push_back(row(point));
  std::string sharding;
  if (config.shard != Shard::none) sharding += ", shard " + to_string(config.shard);
  if (config.shard_ranks) sharding += fmt::format(" in groups of {} ranks", *config.shard_ranks);
  if (config.recompute != Recompute::none) sharding += ", recompute " + to_string(config.recompute);
  return fmt::format(
      "{} of {}, {}, {} kernels{}, {}{}\n\n{}\nOf one rank: batch in {}, activations of one "
      "micro-batch (about), "
      "memory without libraries and\nworking space (about 1 GiB), bytes sent by a ring. "
      "Embeddings: what the rank holds to accumulate\nthe gradients of its tables ({}{}).\n{}",
      config.scaling == Scaling::weak ? "Weak scaling" : "Strong scaling", config.model,
      to_string(config.precision), to_string(*config.kernels),
      facts.sequence_length > 0 ? fmt::format(", sequences of {} tokens", *config.sequence_length)
                                : "",
      to_string(*config.optimizer), sharding, text_table(rows), facts.sample,
      to_string(config.embedding_gradients),
      config.tied_gradient == TiedGradient::sparse ? ", tied gradient sparse" : "",
      config.shard == Shard::none ? "" : collectives_text(plan.points));
}

}  // namespace

std::string run_plan_table(const std::vector<CurvePlan>& plans) {
  std::string text;
  for (const CurvePlan& plan : plans) text += (text.empty() ? "" : "\n") + curve_text(plan);
  return text;
}

}  // namespace scalemark
