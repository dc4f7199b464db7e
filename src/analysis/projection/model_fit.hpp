// The cost model fitted to a curve: not one set of parameters but draws of all that the curve and
// prior knowledge allow, so that what a curve cannot tell stays open in every prediction.
// docs/projection.md states priors and method.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/projection/curve_trend.hpp"
#include "analysis/projection/measured_curve.hpp"
#include "analysis/projection/step_model.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

/// Relative error of a measured step time beside that of its repeats: one launch against another.
inline constexpr double kLaunchDeviation = 0.01;

struct FitQuestions {
  std::vector<std::int64_t> fit_ranks;  ///< rank counts of the curve that are used; empty: all
  Allreduce algorithm = Allreduce::automatic;
  std::optional<std::int64_t> ranks_per_node;  ///< instead of what the curve tells
  std::optional<double> link_gbit;             ///< nominal, of the measured network
  TunedConstants constants;
};

/// A parameter over the draws: median and the range that holds 90 % of them.
struct FittedParameter {
  std::string name, unit;
  double value = 0;
  Interval range{0, 0};
  bool fitted = false;  ///< the curve narrows what was assumed before
  std::string origin;   ///< what it comes from, in words
};

/// How far the model is from a fitted point, as a share of the measured step.
struct Residual {
  double relative = 0;  ///< measured / model - 1
  double assumed = 0;   ///< what repeats and other launches let expect in 95 of 100 cases

  bool is_miss() const { return std::abs(relative) > assumed; }
};

/// One possible truth.
struct ModelDraw {
  CostParameters parameters;
};

struct ModelFit {
  std::vector<CurvePoint> points;    ///< fitted
  std::vector<CurvePoint> held_out;  ///< of the curve, unseen by the fit
  std::vector<Residual> residuals;   ///< of each of `points`
  std::vector<ModelDraw> draws;
  std::vector<FittedParameter> parameters;
  BucketPlan buckets;
  Allreduce algorithm = Allreduce::automatic;
  std::int64_t most_ranks = 1;      ///< largest fitted
  double reference_batch = 1;       ///< samples of a rank at the smallest fitted point
  std::optional<double> link_gbit;  ///< nominal, of the measured network
  CurveTrend trend;
  TunedConstants constants;
  std::vector<std::string> warnings;

  /// The largest miss, as a share of a step of so many seconds and at most of its own: what a short
  /// step hides is little of a long one. 0 where no point is missed.
  double largest_miss(double step_seconds) const;
};

/// ConfigError where `fit_ranks` names a rank count that the curve lacks, or fewer than two rank
/// counts are left: one says nothing of scaling. Takes some hundredths of a second; the same input
/// gives the same draws.
ModelFit fit_model(const MeasuredCurve& curve, const FitQuestions& questions);

/// How much longer ranks compute beside each other than alone: what the baseline of the largest
/// fitted point up to `ranks` says; 1 where none was measured.
double compute_factor(const ModelFit& fit, const ModelDraw& draw, std::int64_t ranks);

/// Mean step of the repeats.
double step_seconds_of(const CurvePoint& point);

}  // namespace scalemark
