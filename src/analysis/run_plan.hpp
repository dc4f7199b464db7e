// The plan behind --dry_run: what every point of a run or a curve would compute, hold and send,
// from the configuration alone; with the closed forms of what the gradients of embedding tables
// cost, which tests hold records against (docs/measurements.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/run_config.hpp"
#include "json.hpp"
#include "measure/bus_bandwidth.hpp"
#include "models/catalog.hpp"

namespace scalemark {

/// One table V x d and what a rank looks up in it in a step.
struct TableLookups {
  std::int64_t rows, width;
  bool tied;             ///< a projection shares the table
  std::int64_t lookups;  ///< of all micro-batches
};

/// What one rank holds and sends in a step.
struct EmbeddingBytes {
  std::int64_t rows_per_rank = 0;   ///< that the rank collects; 0 for dense gradients
  std::int64_t own_bytes = 0;       ///< of these rows and their indices, before they go anywhere
  std::int64_t gathered_bytes = 0;  ///< rows and indices of all ranks
  std::int64_t dense_bytes = 0;     ///< fp32 gradients of tables that an allreduce sums
  std::int64_t wire_bytes = 0;      ///< sent by a ring allgather and a ring allreduce, mean

  std::int64_t buffer_bytes() const { return gathered_bytes + dense_bytes; }
};

/// fp32 rows of d elements and int64 indices, N ranks with as many lookups each. Of one table:
/// dense and sparse_as_dense 4 V d; sparse N T (4 d + 8), and where the table is tied 4 V d beside
/// it, or with a sparse tied gradient N (V + T) (4 d + 8) alone.
EmbeddingBytes embedding_bytes(const std::vector<TableLookups>& tables, EmbeddingGradients strategy,
                               TiedGradient tied, std::int64_t ranks);

/// What a rank starts and sends in a step by one collective, its payload and what a ring sends of
/// it.
struct CollectivePlan {
  Collective collective;
  std::int64_t messages = 0;  ///< about: buckets are closed where a parameter ends
  std::int64_t bytes = 0, wire_bytes = 0;
};

/// What --shard has ranks send, told of one setting.
struct ShardTerms {
  Shard shard = Shard::none;
  std::int64_t passes = 1;                            ///< micro-batches of a step
  std::int64_t bucket_bytes = 1;                      ///< fp32 gradients of a bucket
  std::int64_t gradient_bytes = 4, weight_bytes = 4;  ///< of one element: on the wire, as computed
};

/// The collectives of a step with --shard, whatever the ranks (docs/measurements.md).
struct ShardTraffic {
  CollectivePlan sums, weights;         ///< wire_bytes is 0: it depends on the ranks
  std::int64_t buckets = 0;             ///< messages of the sums of one pass
  std::int64_t kept_bytes = 0;          ///< of weights that stay from an update to the next one,
  std::int64_t kept_messages = 0;       ///< and in how many messages they are gathered
  std::int64_t blocks = 0;              ///< gathered one by one in each pass, and freed; 0: none is
  std::int64_t weight_block_bytes = 0;  ///< of one
};

ShardTraffic shard_traffic(const ModelFacts& facts, const ShardTerms& terms);

/// One point of the plan; bytes are of one rank.
struct PointPlan {
  std::int64_t ranks = 1;
  BatchPlan batch;
  double units_per_step = 0;  ///< images, target tokens or sequences of all ranks
  std::int64_t weight_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::int64_t shadow_bytes = 0;  ///< weights in the compute dtype
  /// With --shard: whole weights and gradients that exist while they are in use, at most.
  std::int64_t gathered_bytes = 0, scattered_bytes = 0;
  std::int64_t kept_bytes = 0;  ///< of `scale`: the weights that every measurement starts from
  double activation_bytes = 0;  ///< of one micro-batch, about; 0: unknown
  EmbeddingBytes embedding;     ///< of its buffer, dense_bytes are among gradient_bytes
  std::int64_t wire_bytes_per_step = 0;  ///< sent by a ring allreduce, or by its narrow form, and
                                         ///< by a ring allgather of embeddings' rows

  std::vector<CollectivePlan> collectives = {};
  std::optional<bool> fits = {};  ///< in --device_memory

  double memory_bytes() const;  ///< all of them but the wire
};

/// Throws ConfigError where the batch does not divide. `keeps_weights`: for `scale`.
PointPlan plan_point(const ResolvedConfig& config, std::int64_t ranks, bool keeps_weights);

/// A curve, or a run as a curve of one point.
struct CurvePlan {
  ResolvedConfig config;
  std::vector<PointPlan> points;
};

/// Returns the plan of every curve of the configuration at these rank counts.
std::vector<CurvePlan> plan_curves(const ResolvedConfig& config,
                                   const std::vector<std::int64_t>& ranks, bool keeps_weights);

/// One curve as an object, several as a list.
Json plans_json(const std::vector<CurvePlan>& plans);

}  // namespace scalemark
