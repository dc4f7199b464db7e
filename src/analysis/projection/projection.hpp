// Predictions of a fitted cost model: other rank counts, links, batches; time to solution; each
// with a band. Pure functions; docs/projection.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/projection/model_fit.hpp"
#include "record/projection.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Share of the model's own probability that a band holds.
inline constexpr double kBandConfidence = 0.9;

using record::Budget;
using record::HeldOutErrors;
using record::Predicted;
using record::ProjectedPoint;

struct ProjectionQuestions {
  FitQuestions fit;
  std::vector<std::int64_t> ranks;  ///< empty: those measured and doublings up to 64 x as many
  std::optional<double> link_gbit, link_latency_seconds;  ///< instead of the measured network's
  std::optional<std::int64_t> ranks_per_node;             ///< instead of the curve's
  std::optional<double> batch_per_rank, global_batch;     ///< samples; at most one of them
  std::optional<Budget> budget, base_budget;  ///< base: of the smallest measured rank count
  std::optional<double> samples_per_epoch;
};

struct Projection {
  std::vector<ProjectedPoint> points;
  Known<HeldOutErrors> errors;
  record::BasePoint base;
  std::vector<std::string> warnings;
};

/// ConfigError where a batch does not fit the scaling of the curve or the ranks, or a budget lacks
/// what it needs.
Projection project(const MeasuredCurve& curve, const ModelFit& fit,
                   const ProjectionQuestions& questions);

/// Step of `ranks` over all draws; for benchmarks and checks.
Predicted predict_step(const ModelFit& fit, const StepWork& work, std::int64_t ranks);

ProjectionResult make_projection_record(const MeasuredCurve& curve, const ModelFit& fit,
                                        const ProjectionQuestions& questions,
                                        const Projection& projection);

}  // namespace scalemark
