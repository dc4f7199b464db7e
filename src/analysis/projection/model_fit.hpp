// The cost model fitted to a curve: not one set of parameters but draws of all that the curve and
// prior knowledge allow, so that what a curve cannot tell stays open in every prediction; how well
// it holds the points it was fitted to; and what the curve shows without a model.
// docs/projection.md states priors and method.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/projection/measured_curve.hpp"
#include "analysis/projection/step_model.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

/// What of a projection was chosen by how well it predicts published curves, and nothing else was.
/// `projection_check --leave_one_out` chooses these numbers, and says how well such a choice does
/// on a curve that had no part in it (docs/projection.md).
struct TunedConstants {
  double evidence = 20;  ///< squared doublings of ranks after which half of a loss is believed
  double bend = 3;       ///< by how much each unseen doubling loses more than the one before
  double nearly_linear = 0.04;  ///< loss per doubling above which the cost model counts for more
  /// The share of the cost model beside the trend, where the prediction is the first to leave a
  /// node.
  double model_share_leaving = 0.2;
  double model_share = 0;            ///< and elsewhere
  double drift_per_doubling = 0.07;  ///< of the truth from a prediction, relative, beyond the curve

  bool operator==(const TunedConstants&) const = default;
};

/// What a curve shows without a cost model: constant efficiency, bent by the loss per doubling of
/// the ranks that its own points show. A nearly linear curve leans on it; docs/projection.md.
struct CurveTrend {
  double shown_loss = 0;         ///< of the step for each doubling of the ranks, relative
  double loss_per_doubling = 0;  ///< the part of it that so many doublings make believable
  double linearity = 0;          ///< exp(-(shown_loss / nearly_linear)^4), 0 to 1
  double last_step_seconds = 0;  ///< at the largest fitted point
  double batch_per_rank = 0;     ///< samples; it says nothing of others
  std::int64_t most_ranks = 1;   ///< largest fitted
  std::int64_t ranks_per_node = 1;

  /// Whether these are the first ranks to leave a node: what the curve lost within one says nothing
  /// of the way out, and what that costs is lost once.
  bool leaves_node(std::int64_t ranks) const {
    return ranks_per_node > 1 && most_ranks <= ranks_per_node && ranks > ranks_per_node;
  }
};

/// Returns the trend of points in ascending ranks, at least two. `linearity` is 0 where ranks do
/// unlike work (strong scaling, several batches): there efficiency has to change.
CurveTrend curve_trend(const std::vector<CurvePoint>& points, Scaling scaling,
                       std::int64_t ranks_per_node, const TunedConstants& constants);

/// last (1 + g (D + bend D²)), D doublings beyond the largest fitted point; without the bend where
/// the ranks leave the node.
double trend_seconds(const CurveTrend& trend, std::int64_t ranks, const TunedConstants& constants);

/// Returns the share of the trend in a prediction, beside the cost model: 0 to 1.
double trend_share(const CurveTrend& trend, std::int64_t ranks, const TunedConstants& constants);

/// Whether the batches of the ranks differ between points.
bool has_unlike_batches(const std::vector<CurvePoint>& points);

/// Relative error of a measured step time beside that of its repeats: one launch against another.
inline constexpr double kLaunchDeviation = 0.01;

struct FitQuestions {
  std::vector<std::int64_t> fit_ranks;  ///< rank counts of the curve that are used; empty: all
  Allreduce algorithm = Allreduce::automatic;
  std::optional<std::int64_t> ranks_per_node;  ///< instead of what the curve tells
  std::optional<double> link_gbit;             ///< nominal, of the measured network
  TunedConstants constants;
};

using record::FittedParameter;

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
/// counts are left: one says nothing of scaling; and where sharded ranks have no such algorithm.
/// Takes some hundredths of a second; the same input gives the same draws.
ModelFit fit_model(const MeasuredCurve& curve, const FitQuestions& questions);

/// How much longer ranks compute beside each other than alone: what the baseline of the largest
/// fitted point up to `ranks` says; 1 where none was measured.
double compute_factor(const ModelFit& fit, const ModelDraw& draw, std::int64_t ranks);

/// Mean step of the repeats.
double step_seconds_of(const CurvePoint& point);

/// Variance of the logarithm of each point's mean step: repeats, pooled over points, and what
/// launches differ by.
std::vector<double> log_variances(const std::vector<CurvePoint>& points);

/// Returns the residual of each fitted point against the median over the draws.
std::vector<Residual> residuals_of(const ModelFit& fit);

/// Adds a warning for each fitted point that the model misses, and one for a weak curve of unlike
/// batches.
void warn_of_curve(ModelFit& fit, const MeasuredCurve& curve);

}  // namespace scalemark
