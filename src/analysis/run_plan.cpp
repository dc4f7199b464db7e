// Computes the plan of a run or a curve from its configuration.
#include "analysis/run_plan.hpp"

#include "config/curves.hpp"
#include "measure/bus_bandwidth.hpp"
#include "models/catalog.hpp"

namespace scalemark {

EmbeddingBytes embedding_bytes(const std::vector<TableLookups>& tables, EmbeddingGradients strategy,
                               TiedGradient tied_gradient, std::int64_t ranks) {
  const bool sparse = strategy == EmbeddingGradients::sparse;
  const bool converted = strategy == EmbeddingGradients::sparse_as_dense;
  EmbeddingBytes bytes;
  for (const TableLookups& table : tables) {
    const bool carried =
        table.tied && (converted || (sparse && tied_gradient == TiedGradient::sparse));
    const std::int64_t collected = table.lookups + (carried ? table.rows : 0);
    const std::int64_t own = collected * (4 * table.width + 8);
    if (sparse || converted) bytes.rows_per_rank += collected;
    if (sparse || converted) bytes.own_bytes += own;
    if (sparse) bytes.gathered_bytes += ranks * own;
    if (!sparse || (table.tied && !carried)) bytes.dense_bytes += 4 * table.rows * table.width;
  }
  bytes.wire_bytes = ring_allgather_bytes(bytes.gathered_bytes, ranks) +
                     ring_allreduce_bytes(bytes.dense_bytes, ranks);
  return bytes;
}

namespace {

std::int64_t states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
    case Optimizer::lars:
      return 1;
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::lamb:
      break;
  }
  return 2;
}

bool two_bytes(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

/// Activations grow with the micro-batch, the length or the image, and halve in bf16 and fp16.
double activation_bytes(const ResolvedConfig& config, const ModelFacts& facts,
                        std::int64_t samples) {
  double each = facts.activation_bytes;
  if (facts.sequence_length > 0)
    each *=
        static_cast<double>(*config.sequence_length) / static_cast<double>(facts.sequence_length);
  if (facts.image_size > 0) {
    const double side =
        static_cast<double>(*config.image_size) / static_cast<double>(facts.image_size);
    each *= side * side;
  }
  return each * static_cast<double>(samples) * (two_bytes(config.precision) ? 0.5 : 1);
}

EmbeddingBytes embedding_of(const ResolvedConfig& config, const ModelFacts& facts,
                            const BatchPlan& batch, std::int64_t ranks) {
  std::vector<TableLookups> tables;
  const std::int64_t length = config.sequence_length.value_or(0);
  for (const TableFacts& table : embedding_tables(facts, batch.micro_batch_size, length))
    tables.push_back({table.rows, table.width, table.tied, table.lookups * batch.micro_batches()});
  return embedding_bytes(tables, config.embedding_gradients, config.tied_gradient, ranks);
}

/// Tables whose gradients are gathered have none among the allreduced ones. A 2-byte type halves
/// the latter.
std::int64_t wire_bytes(const ResolvedConfig& config, const PointPlan& plan) {
  std::int64_t tables = 0;
  for (const TableFacts& table : embedding_tables(*find_model(config.model), 1, 1))
    tables += 4 * table.rows * table.width;
  const std::int64_t reduced = plan.gradient_bytes - tables + plan.embedding.dense_bytes;
  const std::int64_t payload = config.wire_dtype == WireDtype::fp32 ? reduced : reduced / 2;
  return 2 * (plan.ranks - 1) * payload / plan.ranks +
         (plan.ranks - 1) * plan.embedding.gathered_bytes / plan.ranks;
}

Json point_json(const PointPlan& plan) {
  return {{"ranks", plan.ranks},
          {"global_batch_size", plan.batch.global_batch_size},
          {"batch_size_per_rank", plan.batch.batch_size_per_rank},
          {"micro_batch_size", plan.batch.micro_batch_size},
          {"micro_batches", plan.batch.micro_batches()},
          {"units_per_step", plan.units_per_step},
          {"weight_bytes", plan.weight_bytes},
          {"shadow_bytes", plan.shadow_bytes},
          {"kept_bytes", plan.kept_bytes},
          {"gradient_bytes", plan.gradient_bytes},
          {"embedding_rows_per_rank", plan.embedding.rows_per_rank},
          {"embedding_buffer_bytes", plan.embedding.buffer_bytes()},
          {"embedding_wire_bytes_per_step", plan.embedding.wire_bytes},
          {"optimizer_bytes", plan.optimizer_bytes},
          {"activation_bytes", plan.activation_bytes > 0 ? Json(plan.activation_bytes) : Json()},
          {"memory_bytes", plan.memory_bytes()},
          {"wire_bytes_per_step", plan.wire_bytes_per_step}};
}

}  // namespace

double PointPlan::memory_bytes() const {
  const std::int64_t gathered = ranks > 1 ? embedding.gathered_bytes : 0;  // else its own alone
  return static_cast<double>(weight_bytes + gradient_bytes + optimizer_bytes + shadow_bytes +
                             kept_bytes + embedding.own_bytes + gathered) +
         activation_bytes;
}

PointPlan plan_point(const ResolvedConfig& config, std::int64_t ranks, bool keeps_weights) {
  const ModelFacts facts = *find_model(config.model);
  PointPlan plan;
  plan.ranks = ranks;
  plan.batch = plan_batch(config, ranks);
  const std::int64_t units_per_sample = facts.unit == "tokens/sec" ? *config.sequence_length : 1;
  plan.units_per_step = static_cast<double>(plan.batch.global_batch_size * units_per_sample);
  const std::int64_t fp32 = 4 * facts.parameters;
  plan.weight_bytes = fp32;
  plan.gradient_bytes =
      config.reducer == Reducer::c10d ? 2 * fp32 : fp32;  // it has its own buckets
  plan.optimizer_bytes = states_of(*config.optimizer) * fp32;
  plan.shadow_bytes = two_bytes(config.precision) ? fp32 / 2 : 0;
  plan.kept_bytes = keeps_weights ? fp32 : 0;
  plan.activation_bytes = activation_bytes(config, facts, plan.batch.micro_batch_size);
  plan.embedding = embedding_of(config, facts, plan.batch, ranks);
  plan.wire_bytes_per_step = wire_bytes(config, plan);
  return plan;
}

std::vector<CurvePlan> plan_curves(const ResolvedConfig& config,
                                   const std::vector<std::int64_t>& ranks, bool keeps_weights) {
  // A single point is a run, or a curve without a base of its own.
  const std::int64_t base = ranks.size() > 1 ? ranks.front() : 0;
  std::vector<CurvePlan> plans;
  for (const CurveConfig& curve : curves_of(config)) {
    CurvePlan plan{curve.config, {}};
    for (const std::int64_t n : ranks)
      plan.points.push_back(plan_point(point_config(plan.config, n, base), n, keeps_weights));
    plans.push_back(std::move(plan));
  }
  return plans;
}

Json plans_json(const std::vector<CurvePlan>& plans) {
  Json list = Json::array();
  for (const auto& [config, points] : plans) {
    list.push_back({{"model", config.model},
                    {"unit", find_model(config.model)->unit},
                    {"points", Json::array()}});
    for (const PointPlan& point : points) list.back()["points"].push_back(point_json(point));
  }
  return list.size() == 1 ? list.front() : list;
}

}  // namespace scalemark
