// See step_model.hpp.
#include "analysis/projection/step_model.hpp"

namespace scalemark {

StepCost step_cost(const CostParameters& parameters, const StepWork& work, std::int64_t ranks,
                   double lateness, Allreduce algorithm, double compute_factor) {
  StepCost cost;
  const double growing = work.batch_per_rank / parameters.reference_batch;
  cost.compute_seconds = compute_factor * parameters.compute_seconds *
                         (parameters.fixed_share + (1 - parameters.fixed_share) * growing);
  cost.straggler_seconds = cost.compute_seconds * parameters.straggler_deviation * lateness;
  const CommunicationCost communication =
      communication_cost(work.buckets, cost.compute_seconds, ranks, parameters.network, algorithm);
  cost.communication_seconds = communication.total_seconds;
  cost.exposed_seconds = communication.exposed_seconds;
  cost.algorithm = communication.algorithm;
  return cost;
}

}  // namespace scalemark
