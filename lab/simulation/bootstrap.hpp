// Bootstrap intervals of any statistic of one or several independent samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark {

/// Independent samples, e.g. the launches of two sets.
using SampleSet = std::vector<std::vector<double>>;

/// percentile: quantiles of the resampled statistic (Efron and Tibshirani 1993, section 13.3): the
/// default, since between launches it covers at least as well (docs/coverage.md). bca: these
/// shifted for bias and for a spread that changes with the value (Efron 1987; Davison and Hinkley
/// 1997, section 5.3.2, for several samples): for skewed statistics of many values.
enum class BootstrapMethod { percentile, bca };

/// Resamples each sample with replacement. For statistics that have no exact interval: it is too
/// narrow, at 20 launches still by some points. nullopt for an empty sample set, a sample of fewer
/// than two values, or (bca) a statistic that its resamples never reach.
std::optional<Interval> bootstrap_interval(const SampleSet& samples,
                                           const std::function<double(const SampleSet&)>& statistic,
                                           BootstrapMethod method = BootstrapMethod::percentile,
                                           double confidence = 0.95, int resamples = 1999,
                                           std::uint64_t seed = 1);

}  // namespace scalemark
