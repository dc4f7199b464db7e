// The plan behind --dry_run: what every point of a run or a curve would compute, hold and send,
// from the configuration alone.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/embedding_bytes.hpp"
#include "config/run_config.hpp"
#include "json.hpp"

namespace scalemark {

/// One point of the plan; bytes are of one rank.
struct PointPlan {
  std::int64_t ranks = 1;
  BatchPlan batch;
  double units_per_step = 0;  ///< images, target tokens or sequences of all ranks
  std::int64_t weight_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::int64_t shadow_bytes = 0;  ///< weights in the compute dtype
  std::int64_t kept_bytes = 0;    ///< of `scale`: the weights that every measurement starts from
  double activation_bytes = 0;    ///< of one micro-batch, about; 0: unknown
  EmbeddingBytes embedding;       ///< of its buffer, dense_bytes are among gradient_bytes
  std::int64_t wire_bytes_per_step = 0;  ///< sent by a ring allreduce, or by its narrow form, and
                                         ///< by a ring allgather of embeddings' rows

  double memory_bytes() const;  ///< all of them but the wire
};

/// Throws ConfigError where the batch does not divide. `keeps_weights`: for `scale`.
PointPlan plan_point(const ResolvedConfig& config, std::int64_t ranks, bool keeps_weights);

/// A curve, or a run as a curve of one point.
struct CurvePlan {
  ResolvedConfig config;
  std::vector<PointPlan> points;
};

/// Of every curve of the configuration at these rank counts.
std::vector<CurvePlan> plan_curves(const ResolvedConfig& config,
                                   const std::vector<std::int64_t>& ranks, bool keeps_weights);

/// One curve as an object, several as a list.
Json plans_json(const std::vector<CurvePlan>& plans);

}  // namespace scalemark
