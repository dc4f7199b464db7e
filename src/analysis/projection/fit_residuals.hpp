// How well a fitted model holds the points that it was fitted to, and what is said where it does
// not.
#pragma once

#include <vector>

#include "analysis/projection/model_fit.hpp"

namespace scalemark {

/// Variance of the logarithm of each point's mean step: repeats, pooled over points, and what
/// launches differ by.
std::vector<double> log_variances(const std::vector<CurvePoint>& points);

/// Of each fitted point against the median over the draws.
std::vector<Residual> residuals_of(const ModelFit& fit);

/// Adds a warning for each fitted point that the model misses, and one for a weak curve of unlike
/// batches.
void warn_of_curve(ModelFit& fit, const MeasuredCurve& curve);

}  // namespace scalemark
