// See prediction.hpp.
#include "analysis/projection/prediction.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "analysis/projection/model_priors.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// Middles of equally likely parts of the standard normal distribution: deviates without chance.
template <std::size_t Parts>
std::array<double, Parts> normal_middles() {
  std::array<double, Parts> middles;
  for (std::size_t i = 0; i < Parts; ++i)
    middles[i] = boost::math::quantile(boost::math::normal(),
                                       (static_cast<double>(i) + 0.5) / static_cast<double>(Parts));
  return middles;
}

/// The share of the nominal rate that was reached stays; where no nominal rate is known, the share
/// is as open as it was beforehand.
double seconds_per_byte(const ModelFit& fit, const LinkCost& measured, double link_gbit,
                        std::size_t draw) {
  if (fit.link_gbit) return measured.seconds_per_byte * *fit.link_gbit / link_gbit;
  static const auto kOpen = normal_middles<30>();
  const double share = kLinkShare.median * std::exp(kLinkShare.spread * kOpen[draw % 30]);
  return 8e-9 / (share * link_gbit);
}

CostParameters changed(const ModelFit& fit, const NetworkChange& change, std::size_t draw) {
  CostParameters parameters = fit.draws[draw].parameters;
  Network& network = parameters.network;
  if (change.ranks_per_node) network.ranks_per_node = *change.ranks_per_node;
  if (change.link_gbit)
    network.link.seconds_per_byte = seconds_per_byte(fit, network.link, *change.link_gbit, draw);
  if (change.link_latency_seconds) network.link.latency_seconds = *change.link_latency_seconds;
  return parameters;
}

double drift(const ModelFit& fit, std::int64_t ranks) {
  const double doublings =
      std::log2(static_cast<double>(ranks) / static_cast<double>(fit.most_ranks));
  return fit.constants.drift_per_doubling * std::max(0., doublings);
}

/// Quantiles of step times whose logarithms are spread by `deviation` around those of the draws. No
/// step is shorter than its computation, but for what launches differ by.
Interval band_of(const std::vector<StepCost>& costs, double deviation) {
  static const auto kDeviates = normal_middles<12>();
  std::vector<double> spread;
  spread.reserve(costs.size() * kDeviates.size());
  for (const StepCost& cost : costs) {
    const double shortest = std::min(cost.compute_seconds, cost.seconds());
    for (const double deviate : kDeviates)
      spread.push_back(std::max(cost.seconds() * std::exp(deviation * deviate),
                                shortest * std::exp(kLaunchDeviation * deviate)));
  }
  const double tail = (1 - kBandConfidence) / 2;
  return {quantile(spread, tail), quantile(spread, 1 - tail)};
}

/// Of draws in order of their step: the mean parts of the middle half, which vary less from one
/// rank count to the next than those of the draw in the middle, as shares of its step.
StepCost middle_parts(const std::vector<StepCost>& ordered) {
  StepCost parts = ordered[ordered.size() / 2];
  const double seconds = parts.seconds();
  const std::size_t begin = ordered.size() / 4, end = ordered.size() - begin;
  StepCost sum;
  for (std::size_t i = begin; i < end; ++i) {
    sum.compute_seconds += ordered[i].compute_seconds;
    sum.straggler_seconds += ordered[i].straggler_seconds;
    sum.exposed_seconds += ordered[i].exposed_seconds;
    sum.communication_seconds += ordered[i].communication_seconds;
    sum.trend_seconds += ordered[i].trend_seconds;
  }
  const double scale = seconds / sum.seconds();
  parts.compute_seconds = scale * sum.compute_seconds;
  parts.straggler_seconds = scale * sum.straggler_seconds;
  parts.exposed_seconds = scale * sum.exposed_seconds;
  parts.communication_seconds = scale * sum.communication_seconds;
  parts.trend_seconds = scale * sum.trend_seconds;
  return parts;
}

bool is_unchanged(const NetworkChange& change) {
  return !change.link_gbit && !change.link_latency_seconds && !change.ranks_per_node;
}

/// Steps of the draws at one rank count, ascending.
std::vector<StepCost> costs_of(const ModelFit& fit, const NetworkChange& change,
                               const StepWork& work, std::int64_t ranks) {
  const double lateness = expected_maximum_of_normals(static_cast<double>(ranks));
  std::vector<StepCost> costs;
  for (std::size_t i = 0; i < fit.draws.size(); ++i)
    costs.push_back(step_cost(changed(fit, change, i), work, ranks, lateness, fit.algorithm,
                              compute_factor(fit, fit.draws[i], ranks)));
  std::ranges::sort(costs, {}, [](const StepCost& cost) { return cost.seconds(); });
  return costs;
}

double median_seconds(const std::vector<StepCost>& ordered) {
  return ordered[ordered.size() / 2].seconds();
}

/// What the trend of the curve makes of the model's steps.
struct Leaning {
  double share = 0;         ///< of the trend
  double disagreement = 0;  ///< log of trend / model
};

/// Up to the farthest multiple of the ranks that published curves could check; beyond it the model
/// goes on from there.
Leaning leaning_of(const ModelFit& fit, const NetworkChange& change, const StepWork& work,
                   std::int64_t ranks, double model_seconds) {
  const CurveTrend& trend = fit.trend;
  if (ranks <= trend.most_ranks || trend.share == 0 || !is_unchanged(change) ||
      work.batch_per_rank != trend.batch_per_rank)
    return {};
  const std::int64_t farthest = kFarthestTrend * trend.most_ranks;
  if (ranks > farthest) model_seconds = median_seconds(costs_of(fit, change, work, farthest));
  return {trend.share, std::log(trend_seconds(trend, std::min(ranks, farthest)) / model_seconds)};
}

/// Geometric mean of the two, draw by draw: the middle moves towards the trend, and what only the
/// model leaves open counts less.
void lean(std::vector<StepCost>& ordered, const Leaning& leaning) {
  const double middle = median_seconds(ordered);
  for (StepCost& cost : ordered) {
    const double seconds = cost.seconds();
    const double log_factor =
        leaning.share * (leaning.disagreement + std::log(middle) - std::log(seconds));
    cost.trend_seconds = seconds * (std::exp(log_factor) - 1);
  }
}

}  // namespace

PredictedStep predict(const ModelFit& fit, const NetworkChange& change, const StepWork& work,
                      std::int64_t ranks) {
  std::vector<StepCost> costs = costs_of(fit, change, work, ranks);
  const Leaning leaning = leaning_of(fit, change, work, ranks, median_seconds(costs));
  lean(costs, leaning);
  const double between =
      std::sqrt(leaning.share * (1 - leaning.share)) * std::abs(leaning.disagreement);
  const double deviation =
      std::hypot(std::hypot(kLaunchDeviation, fit.largest_miss(median_seconds(costs))),
                 std::hypot(drift(fit, ranks), between));
  const Interval band = band_of(costs, deviation);
  const StepCost parts = middle_parts(costs);
  return {{parts.seconds(), band}, parts};
}

Predicted predict_step(const ModelFit& fit, const StepWork& work, std::int64_t ranks) {
  return predict(fit, {}, work, ranks).seconds;
}

}  // namespace scalemark
