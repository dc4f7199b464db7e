// What a cost model is fitted to: the step times of one setting by ranks and batch, and what of the
// set-up is known. From launches of scalemark or a published curve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/projection/step_model.hpp"
#include "config/run_config.hpp"
#include "record/projection.hpp"
#include "result/published_curve.hpp"
#include "result/result_set.hpp"

namespace scalemark {

struct CurvePoint {
  std::int64_t ranks = 1;
  double batch_per_rank = 1;                    ///< samples
  std::vector<double> step_seconds;             ///< one a launch or round
  std::optional<double> baseline_step_seconds;  ///< without communication
};

struct MeasuredCurve : record::FittedCurve {
  std::string label;
  double units_per_sample = 1;  ///< units of a step = this x global batch
  BucketPlan buckets;
  std::optional<std::int64_t> ranks_per_node;
  std::optional<double> link_gbit;       ///< nominal rate of a node's link
  std::optional<double> step_deviation;  ///< of a rank's step times, relative
  bool cpu = false;                      ///< the cores that compute may also move the bytes
  std::vector<CurvePoint> points;        ///< ascending ranks, then batch
};

/// Returns the curve of launches that differ in ranks and batch alone, and in what follows from
/// these. Throws ConfigError where they differ in anything else (naming it), mix weak and strong,
/// are inferences, or know no such model.
MeasuredCurve curve_of(const ResultSet& set);
MeasuredCurve curve_of(const PublishedCurve& published, const std::string& label,
                       const std::string& path);

}  // namespace scalemark
