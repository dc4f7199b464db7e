// Computes the plan of a run or a curve from its configuration.
#include "analysis/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/curves.hpp"
#include "error.hpp"
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

/// Activations grow with the micro-batch, the length or the image, and halve in bf16 and fp16. With
/// --recompute there are those of one layer, and the inputs of all.
double activation_bytes(const ResolvedConfig& config, const ModelFacts& facts,
                        std::int64_t samples) {
  double each = facts.activation_bytes;
  if (config.recompute != Recompute::none)
    each -= facts.recomputed_bytes * static_cast<double>(facts.blocks - 1);
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

constexpr double kLibraryBytes = 1LL << 30;  ///< of libraries and their working space, about

std::int64_t bucket_bytes(const ResolvedConfig& config) {
  const double mib = config.bucket_mb.value_or(default_bucket_mb(config.device == Device::cuda));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(mib * (1 << 20)));
}

/// Returns fp32 bytes as they are sent.
std::int64_t payload_of(const ResolvedConfig& config, std::int64_t bytes) {
  return config.wire_dtype == WireDtype::fp32 ? bytes : bytes / 2;
}

/// Tables whose gradients are gathered have none among the allreduced ones. A 2-byte type halves
/// the latter.
std::int64_t wire_bytes(const ResolvedConfig& config, const PointPlan& plan) {
  std::int64_t tables = 0;
  for (const TableFacts& table : embedding_tables(*find_model(config.model), 1, 1))
    tables += 4 * table.rows * table.width;
  const std::int64_t payload =
      payload_of(config, plan.gradient_bytes - tables + plan.embedding.dense_bytes);
  return 2 * (plan.ranks - 1) * payload / plan.ranks +
         (plan.ranks - 1) * plan.embedding.gathered_bytes / plan.ranks;
}

std::vector<CollectivePlan> whole_collectives(const ResolvedConfig& config, const PointPlan& plan) {
  const std::int64_t bucket = bucket_bytes(config);
  const std::int64_t gathered = plan.embedding.gathered_bytes;
  const std::int64_t of_gathers = gathered > 0 ? ring_allgather_bytes(gathered, plan.ranks) : 0;
  const std::int64_t sums = plan.wire_bytes_per_step - of_gathers;
  std::vector<CollectivePlan> plans{{Collective::allreduce,
                                     (plan.gradient_bytes + bucket - 1) / bucket,
                                     sums * plan.ranks / (2 * (plan.ranks - 1)), sums}};
  if (gathered > 0) plans.push_back({Collective::allgather, 2, gathered, of_gathers});
  return plans;
}

/// What --shard changes in a plan of whole tensors, in groups of `n` ranks. Of a bucket in a 2-byte
/// type that arrives in blocks, each rank keeps the fp32 masters of its own block.
void divide(PointPlan& plan, const ResolvedConfig& config, const ModelFacts& facts,
            std::int64_t n) {
  const std::int64_t whole = plan.weight_bytes, bucket = bucket_bytes(config);
  const bool by_blocks = config.shard == Shard::parameters;
  const std::int64_t block = std::max<std::int64_t>(facts.block_parameters, 1);
  const ShardTraffic traffic =
      shard_traffic(facts, {config.shard, plan.batch.micro_batches(), bucket, payload_of(config, 4),
                            plan.shadow_bytes > 0 ? 2 : 4});

  plan.optimizer_bytes /= n;
  plan.kept_bytes /= n;
  if (plan.shadow_bytes > 0 || by_blocks) plan.weight_bytes /= n;
  if (by_blocks) plan.shadow_bytes /= n;
  const std::int64_t largest_table = facts.vocabulary * facts.width * 4;
  if (config.shard == Shard::optimizer) {
    plan.gradient_bytes += whole / n;
  } else {
    plan.gradient_bytes = whole / n * (plan.batch.micro_batches() > 1 ? 2 : 1);
    // Two sums on their way and one bucket that fills.
    plan.scattered_bytes = std::min(
        whole, std::max(3 * std::max(bucket, by_blocks ? 4 * block : 0), largest_table + bucket));
  }
  if (by_blocks)
    plan.gathered_bytes =
        traffic.kept_bytes + std::min<std::int64_t>(traffic.blocks, 3) * traffic.weight_block_bytes;
  plan.collectives = {traffic.sums, traffic.weights};
  for (CollectivePlan& one : plan.collectives) one.wire_bytes = ring_allgather_bytes(one.bytes, n);
  const std::int64_t own = payload_of(config, whole) / n;
  if (const std::int64_t groups = plan.ranks / n; groups > 1)
    plan.collectives.push_back(
        {Collective::allreduce, traffic.buckets, own, ring_allreduce_bytes(own, groups)});
  plan.wire_bytes_per_step = 0;
  for (const CollectivePlan& one : plan.collectives) plan.wire_bytes_per_step += one.wire_bytes;
}

Json collective_json(const CollectivePlan& plan) {
  return {{"collective", to_string(plan.collective)},
          {"messages", plan.messages},
          {"bytes", plan.bytes},
          {"wire_bytes", plan.wire_bytes}};
}

Json point_json(const PointPlan& plan) {
  Json collectives = Json::array();
  for (const CollectivePlan& one : plan.collectives) collectives.push_back(collective_json(one));
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
          {"gathered_bytes", plan.gathered_bytes},
          {"scattered_bytes", plan.scattered_bytes},
          {"activation_bytes", plan.activation_bytes > 0 ? Json(plan.activation_bytes) : Json()},
          {"memory_bytes", plan.memory_bytes()},
          {"fits", plan.fits ? Json(*plan.fits) : Json()},
          {"wire_bytes_per_step", plan.wire_bytes_per_step},
          {"collectives", std::move(collectives)}};
}

}  // namespace

ShardTraffic shard_traffic(const ModelFacts& facts, const ShardTerms& terms) {
  const bool by_blocks = terms.shard == Shard::parameters && facts.blocks > 0;
  const std::int64_t passes = terms.shard == Shard::optimizer ? 1 : terms.passes;
  const std::int64_t tables = std::ssize(embedding_tables(facts, 1, 1)) + (facts.tied ? 0 : 1);
  const auto buckets_of = [&](std::int64_t elements) {
    return (4 * elements + terms.bucket_bytes - 1) / terms.bucket_bytes;
  };
  ShardTraffic traffic;
  // A parameter lies in one bucket as a whole: a block of a network has four matrices, most of a
  // bucket's size or larger, and a table is a bucket. Vectors are one more.
  const std::int64_t of_blocks =
      by_blocks ? facts.blocks
                : facts.blocks * std::min<std::int64_t>(4, buckets_of(facts.block_parameters));
  traffic.buckets = (facts.blocks > 0 ? of_blocks + tables : buckets_of(facts.parameters)) + 1;
  traffic.sums = {Collective::reduce_scatter, passes * traffic.buckets,
                  passes * terms.gradient_bytes * facts.parameters, 0};
  traffic.blocks = by_blocks ? facts.blocks : 0;
  traffic.weight_block_bytes = by_blocks ? terms.weight_bytes * facts.block_parameters : 0;
  traffic.kept_messages = traffic.buckets - traffic.blocks;
  traffic.kept_bytes =
      terms.weight_bytes * facts.parameters - traffic.blocks * traffic.weight_block_bytes;
  // The last block stays from a forward to a backward pass, the first one until the next pass.
  const std::int64_t again = by_blocks ? 2 * passes * (facts.blocks - 1) + 1 : 0;
  traffic.weights = {Collective::allgather, traffic.kept_messages + again,
                     traffic.kept_bytes + again * traffic.weight_block_bytes, 0};
  return traffic;
}

double PointPlan::memory_bytes() const {
  const std::int64_t gathered = ranks > 1 ? embedding.gathered_bytes : 0;  // else its own alone
  return static_cast<double>(weight_bytes + gradient_bytes + optimizer_bytes + shadow_bytes +
                             kept_bytes + gathered_bytes + scattered_bytes + embedding.own_bytes +
                             gathered) +
         activation_bytes;
}

namespace {

/// Returns the plan of the largest batch of a rank that fits in --device_memory, or of one sample
/// where none does.
PointPlan plan_largest_batch(ResolvedConfig config, std::int64_t ranks, bool keeps_weights) {
  const auto plan_of = [&](std::int64_t batch) {
    config.batch_size = batch;
    return plan_point(config, ranks, keeps_weights);
  };
  constexpr std::int64_t kMost = 1'000'000;  // of --batch_size
  PointPlan fitting = plan_of(1);
  if (!(fitting.activation_bytes > 0))
    throw ConfigError(
        fmt::format("--batch_size max: the plan does not know the activations of {}; give a number",
                    config.model));
  if (!*fitting.fits) return fitting;
  std::int64_t fits = 1, too_large = kMost + 1;
  while (fits + 1 < too_large) {
    const std::int64_t batch = std::min(2 * fits, fits + (too_large - fits) / 2);
    PointPlan plan = plan_of(batch);
    if (*plan.fits) {
      fits = batch;
      fitting = std::move(plan);
    } else {
      too_large = batch;
    }
  }
  return fitting;
}

}  // namespace

PointPlan plan_point(const ResolvedConfig& config, std::int64_t ranks, bool keeps_weights) {
  if (config.largest_batch && !config.batch_size && config.device_memory)
    return plan_largest_batch(config, ranks, keeps_weights);
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
  if (const std::int64_t divided = ranks_of_shards(config, ranks); divided > 1)
    divide(plan, config, facts, divided);
  else if (ranks > 1)
    plan.collectives = whole_collectives(config, plan);
  if (config.device_memory)
    plan.fits = plan.memory_bytes() + kLibraryBytes <= *config.device_memory * (1LL << 30);
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
