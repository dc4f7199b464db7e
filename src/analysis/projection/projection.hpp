// Predictions of a fitted cost model: other rank counts, links, batches; time to solution; each
// with a band. Pure functions; docs/projection.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/projection/model_fit.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Share of the model's own probability that a band holds.
inline constexpr double kBandConfidence = 0.9;

/// How much training is asked for.
struct Budget {
  enum class Unit { steps, epochs, samples, units };
  Unit unit = Unit::steps;
  double amount = 0;
};
std::string to_string(Budget::Unit unit);  ///< "steps", ..., "units"

struct ProjectionQuestions {
  FitQuestions fit;
  std::vector<std::int64_t> ranks;  ///< empty: those measured and doublings up to 64 x as many
  std::optional<double> link_gbit, link_latency_seconds;  ///< instead of the measured network's
  std::optional<std::int64_t> ranks_per_node;             ///< instead of the curve's
  std::optional<double> batch_per_rank, global_batch;     ///< samples; at most one of them
  std::optional<Budget> budget, base_budget;  ///< base: of the smallest measured rank count
  std::optional<double> samples_per_epoch;
};

/// A number of the model with its band.
struct Predicted {
  double value = 0;
  Interval band{0, 0};
};

/// What the same fitted points say without a model.
struct NullModels {
  double constant_efficiency = 0;  ///< throughput: that of the largest fitted point x ranks
  double linear = 0;               ///< throughput: that of the smallest fitted point x ranks
};

struct ProjectedPoint {
  std::int64_t ranks = 1, nodes = 1;
  double batch_per_rank = 1, global_batch = 1;  ///< samples
  Predicted step_seconds, throughput, efficiency;
  double speedup = 1;                   ///< over the smallest measured point
  StepCost parts;                       ///< sums to step_seconds.value
  std::optional<double> measured;       ///< throughput; of points of the curve that ran this way
  std::optional<double> error_percent;  ///< of the predicted throughput
  bool held_out = false;                ///< measured, and unseen by the fit
  NullModels nulls;
  std::optional<double> steps;  ///< of the budget
  std::optional<Predicted> solution_seconds, solution_speedup;
};

/// Mean absolute errors of throughput over the points that the fit has not seen, percent.
struct HeldOutErrors {
  std::size_t points = 0, in_band = 0;
  double model = 0, constant_efficiency = 0, linear = 0;
};

struct Projection {
  std::vector<ProjectedPoint> points;
  std::optional<HeldOutErrors> errors;
  double base_throughput = 0;  ///< of the smallest measured point
  std::int64_t base_ranks = 1;
  std::vector<std::string> warnings;
};

/// ConfigError where a batch does not fit the scaling of the curve or the ranks, or a budget lacks
/// what it needs.
Projection project(const MeasuredCurve& curve, const ModelFit& fit,
                   const ProjectionQuestions& questions);

/// Step of `ranks` over all draws; for benchmarks and checks.
Predicted predict_step(const ModelFit& fit, const StepWork& work, std::int64_t ranks);

/// The record (kind "projection", docs/schema/projection.schema.json).
Json make_projection_record(const MeasuredCurve& curve, const ModelFit& fit,
                            const ProjectionQuestions& questions, const Projection& projection);

}  // namespace scalemark
