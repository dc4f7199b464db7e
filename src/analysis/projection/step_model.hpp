// The cost model of one training step: computation, waiting for the slowest rank, and communication
// that is not hidden. Pure functions; docs/projection.md states the model and its limits.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/projection/bucket_schedule.hpp"

namespace scalemark {

/// What a rank has to do in a step, known beforehand.
struct StepWork {
  double batch_per_rank = 1;  ///< samples
  BucketPlan buckets;
};

/// What a curve decides. The computation of `reference_batch` samples takes `compute_seconds`, of
/// others that share of it which grows with the batch.
struct CostParameters {
  double compute_seconds = 1;
  double reference_batch = 1;
  double fixed_share = 0;          ///< of compute_seconds, whatever the batch: 0 to 1
  double straggler_deviation = 0;  ///< of a rank's computation between ranks, relative
  Network network;
};

struct StepCost {
  double compute_seconds = 0;    ///< mean rank
  double straggler_seconds = 0;  ///< slowest rank - mean rank
  double communication_seconds = 0;
  double exposed_seconds = 0;  ///< of these
  double trend_seconds = 0;    ///< what a curve's own trend adds to the model's; may be below 0
  Allreduce algorithm = Allreduce::ring;

  double seconds() const {
    return compute_seconds + straggler_seconds + exposed_seconds + trend_seconds;
  }
};

/// `lateness`: expected_maximum_of_normals(ranks), which callers keep. `compute_factor`: how much
/// longer ranks that share a machine compute.
StepCost step_cost(const CostParameters& parameters, const StepWork& work, std::int64_t ranks,
                   double lateness, Allreduce algorithm = Allreduce::automatic,
                   double compute_factor = 1);

}  // namespace scalemark
