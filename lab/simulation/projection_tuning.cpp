// Searches the constants of projections that predict published curves best.
#include "lab/simulation/projection_tuning.hpp"

#include <algorithm>
#include <array>

#include "lab/simulation/projection_check.hpp"

namespace scalemark::projection {
namespace {

constexpr double kPenalty = 40;
/// Points of error behind constant efficiency that a curve may lie without a penalty.
constexpr double kBehind = 2;

/// Without the drift, which moves no prediction and is chosen after the others. More evidence and
/// more bend trade against each other, and beyond these no curve that was left out is predicted
/// better.
std::vector<TunedConstants> grid() {
  std::vector<TunedConstants> all;
  for (const double evidence : {5., 10., 20., 40.})
    for (const double bend : {0., 1., 2., 3.})
      for (const double nearly_linear : {0.03, 0.04, 0.05, 0.06, 0.08})
        for (const double leaving : {0.1, 0.2, 0.3, 0.5})
          for (const double elsewhere : {0., 0.2}) {
            TunedConstants one;
            one.evidence = evidence;
            one.bend = bend;
            one.nearly_linear = nearly_linear;
            one.model_share_leaving = leaving;
            one.model_share = elsewhere;
            all.push_back(one);
          }
  return all;
}

constexpr std::array kDrifts{0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12, 0.15, 0.20};

/// The errors of every curve under each constants, none of which enters the fit.
class Errors {
 public:
  explicit Errors(const std::vector<MeasuredCurve>& curves) : curves_(curves) {
    for (const MeasuredCurve& curve : curves) {
      halves_.emplace_back();
      halves_.back().fit.fit_ranks = first_half(curve);
      halves_.back().ranks = unseen_half(curve);
      fits_.push_back(fit_model(curve, halves_.back().fit));
    }
  }

  HeldOutErrors of(std::size_t i, const TunedConstants& constants) {
    const MeasuredCurve& curve = curves_[i];
    ModelFit& fit = fits_[i];
    fit.constants = constants;
    fit.trend = curve_trend(fit.points, curve.scaling, fit.trend.ranks_per_node, constants);
    return *project(curve, fit, halves_[i]).errors;
  }

 private:
  const std::vector<MeasuredCurve>& curves_;
  std::vector<ProjectionQuestions> halves_;
  std::vector<ModelFit> fits_;
};

double loss(const HeldOutErrors& errors) {
  return errors.model +
         kPenalty * std::max(0., errors.model - errors.constant_efficiency - kBehind);
}

class Tuner {
 public:
  explicit Tuner(const std::vector<MeasuredCurve>& curves)
      : count_(curves.size()), errors_(curves), grid_(grid()) {
    for (const TunedConstants& constants : grid_) {
      losses_.emplace_back();
      for (std::size_t i = 0; i < count_; ++i)
        losses_.back().push_back(loss(errors_.of(i, constants)));
    }
  }

  /// On all curves but `without`; `count_` leaves none out.
  TunedConstants choose(std::size_t without) {
    std::size_t best = 0;
    double least = 0;
    for (std::size_t g = 0; g < grid_.size(); ++g) {
      double sum = 0;
      for (std::size_t i = 0; i < count_; ++i) sum += i == without ? 0 : losses_[g][i];
      if (g == 0 || sum < least) best = g, least = sum;
    }
    TunedConstants chosen = grid_[best];
    for (const double drift : kDrifts) {
      chosen.drift_per_doubling = drift;
      if (holds(chosen, without)) break;
    }
    return chosen;
  }

  HeldOutErrors errors(std::size_t curve, const TunedConstants& constants) {
    return errors_.of(curve, constants);
  }

 private:
  bool holds(const TunedConstants& constants, std::size_t without) {
    std::size_t points = 0, in_band = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (i == without) continue;
      const HeldOutErrors errors = errors_.of(i, constants);
      points += errors.points;
      in_band += errors.in_band;
    }
    return static_cast<double>(in_band) >= kBandConfidence * static_cast<double>(points);
  }

  std::size_t count_;
  Errors errors_;
  std::vector<TunedConstants> grid_;
  std::vector<std::vector<double>> losses_;  ///< by constants, then curve
};

}  // namespace

TuningResult tune(const std::vector<MeasuredCurve>& curves) {
  Tuner tuner(curves);
  TuningResult result;
  result.of_all = tuner.choose(curves.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const TunedConstants chosen = tuner.choose(i);
    result.left_out.push_back({&curves[i], chosen, tuner.errors(i, chosen)});
  }
  return result;
}

}  // namespace scalemark::projection
