// Fits the cost model to a curve by drawing from all parameters that the curve allows.
#include "analysis/projection/model_fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/projection/model_priors.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

double doublings(std::int64_t from, std::int64_t to) {
  return std::log2(static_cast<double>(to) / static_cast<double>(from));
}

}  // namespace

bool has_unlike_batches(const std::vector<CurvePoint>& points) {
  return std::ranges::any_of(points, [&](const CurvePoint& point) {
    return point.batch_per_rank != points.front().batch_per_rank;
  });
}

CurveTrend curve_trend(const std::vector<CurvePoint>& points, Scaling scaling,
                       std::int64_t ranks_per_node, const TunedConstants& constants) {
  const CurvePoint &first = points.front(), &last = points.back();
  double products = 0, squares = 0;  // least squares through the first point, of relative errors
  for (const CurvePoint& point : points) {
    const double x = doublings(first.ranks, point.ranks);
    const double ratio = step_seconds_of(point) / step_seconds_of(first);
    products += x * (ratio - 1) / (ratio * ratio);
    squares += x * x / (ratio * ratio);
  }
  CurveTrend trend;
  trend.shown_loss = std::max(0., products / squares);
  trend.loss_per_doubling = std::max(0., products / (squares + constants.evidence));
  trend.last_step_seconds = step_seconds_of(last);
  trend.batch_per_rank = last.batch_per_rank;
  trend.most_ranks = last.ranks;
  trend.ranks_per_node = ranks_per_node;
  if (scaling == Scaling::weak && !has_unlike_batches(points))
    trend.linearity = std::exp(-std::pow(trend.shown_loss / constants.nearly_linear, 4));
  return trend;
}

double trend_seconds(const CurveTrend& trend, std::int64_t ranks, const TunedConstants& constants) {
  const double unseen = std::max(0., doublings(trend.most_ranks, ranks));
  const double bend = trend.leaves_node(ranks) ? 0 : constants.bend;
  return trend.last_step_seconds * (1 + trend.loss_per_doubling * unseen * (1 + bend * unseen));
}

double trend_share(const CurveTrend& trend, std::int64_t ranks, const TunedConstants& constants) {
  const double of_model =
      trend.leaves_node(ranks) ? constants.model_share_leaving : constants.model_share;
  return (1 - of_model) * trend.linearity;
}

namespace {

/// Returns the relative deviation of the repeats within points; 0 where no point has two.
double pooled_deviation(const std::vector<CurvePoint>& points) {
  double squares = 0, freedom = 0;
  for (const CurvePoint& point : points) {
    std::vector<double> logs;
    for (const double seconds : point.step_seconds) logs.push_back(std::log(seconds));
    const auto n = static_cast<double>(logs.size());
    squares += std::pow(standard_deviation(logs), 2) * (n - 1);
    freedom += n - 1;
  }
  return freedom > 0 ? std::sqrt(squares / freedom) : 0;
}

}  // namespace

std::vector<double> log_variances(const std::vector<CurvePoint>& points) {
  const double repeats = pooled_deviation(points);
  std::vector<double> of;
  for (const CurvePoint& point : points)
    of.push_back(repeats * repeats / static_cast<double>(point.step_seconds.size()) +
                 kLaunchDeviation * kLaunchDeviation);
  return of;
}

std::vector<Residual> residuals_of(const ModelFit& fit) {
  std::vector<Residual> residuals;
  constexpr double kIn95Of100 = 1.96;
  const auto variance = log_variances(fit.points);
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    const CurvePoint& point = fit.points[i];
    const double lateness = expected_maximum_of_normals(static_cast<double>(point.ranks));
    std::vector<double> steps;
    for (const ModelDraw& draw : fit.draws)
      steps.push_back(step_cost(draw.parameters, {point.batch_per_rank, fit.buckets}, point.ranks,
                                lateness, fit.algorithm, compute_factor(fit, draw, point.ranks))
                          .seconds());
    residuals.push_back(
        {step_seconds_of(point) / median(steps) - 1, kIn95Of100 * std::sqrt(variance[i])});
  }
  return residuals;
}

void warn_of_curve(ModelFit& fit, const MeasuredCurve& curve) {
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    const Residual& one = fit.residuals[i];
    if (one.is_miss())
      fit.warnings.push_back(fmt::format(
          "the model does not fit {} ranks: the measured step is {:+.1f} % off, where repeats and "
          "launches let expect {:.1f} %; bands are wider by as much, and the curve may have "
          "a cause that the model does not know",
          fit.points[i].ranks, 100 * one.relative, 100 * one.assumed));
  }
  if (curve.scaling == Scaling::weak && has_unlike_batches(curve.points)) {
    std::set<double> batches;
    for (const CurvePoint& point : curve.points) batches.insert(point.batch_per_rank);
    fit.warnings.push_back(fmt::format(
        "a weak curve of unlike batches ({} samples a rank): its efficiencies mix ranks "
        "and batch; measure it with one --batch_size",
        fmt::join(batches, ", ")));
  }
}

double ModelFit::largest_miss(double step_seconds) const {
  double largest = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i)
    if (residuals[i].is_miss())
      largest = std::max(largest, std::abs(residuals[i].relative) *
                                      std::min(1., step_seconds_of(points[i]) / step_seconds));
  return largest;
}

namespace {

constexpr std::size_t kDraws = 600;
constexpr std::uint64_t kSeed = 20211122;
/// Relative error of the baseline as a measure of what a rank computes alone: ranks of a machine
/// slow each other.
constexpr double kBaselineDeviation = 0.2;
/// A parameter is fitted where its draws spread over at most this share of what was assumed.
constexpr double kNarrowed = 0.7;

double share_of_batch(const CostParameters& parameters, double batch) {
  return parameters.fixed_share + (1 - parameters.fixed_share) * batch / parameters.reference_batch;
}

/// The points as the likelihood needs them.
class Likelihood {
 public:
  Likelihood(const ModelFit& fit, const Priors& priors) : fit_(fit), priors_(priors) {
    const auto variance = log_variances(fit.points);
    for (std::size_t i = 0; i < variance.size(); ++i) {
      const CurvePoint& point = fit.points[i];
      terms_.push_back({&point, std::log(step_seconds_of(point)), variance[i],
                        expected_maximum_of_normals(static_cast<double>(point.ranks))});
    }
  }

  /// Weighted squares of log step times, and of the coordinates: the logarithm of the density.
  double operator()(const Coordinates& at) const {
    const CostParameters parameters = priors_.parameters(at);
    double squares = 0;
    for (std::size_t i = kFixed; i < kAll; ++i) squares += at[i] * at[i];
    for (const Term& term : terms_) {
      const CurvePoint& point = *term.point;
      double factor = 1;
      if (point.baseline_step_seconds) {
        const double alone =
            parameters.compute_seconds * share_of_batch(parameters, point.batch_per_rank);
        factor = *point.baseline_step_seconds / alone;
        squares += std::pow(std::log(factor) / kBaselineDeviation, 2);
      }
      const StepCost cost = step_cost(parameters, {point.batch_per_rank, fit_.buckets}, point.ranks,
                                      term.lateness, fit_.algorithm, factor);
      squares += std::pow(term.log_seconds - std::log(cost.seconds()), 2) / term.variance;
    }
    return -squares / 2;
  }

 private:
  struct Term {
    const CurvePoint* point;
    double log_seconds, variance, lateness;
  };
  const ModelFit& fit_;
  const Priors& priors_;
  std::vector<Term> terms_;
};

void divide_points(ModelFit& fit, const MeasuredCurve& curve, const FitQuestions& questions) {
  const auto& wanted = questions.fit_ranks;
  std::set<std::int64_t> there, left;
  for (const CurvePoint& point : curve.points) {
    there.insert(point.ranks);
    const bool used = wanted.empty() || std::ranges::find(wanted, point.ranks) != wanted.end();
    (used ? fit.points : fit.held_out).push_back(point);
    if (used) left.insert(point.ranks);
  }
  for (const std::int64_t ranks : wanted)
    if (!there.contains(ranks))
      throw ConfigError(fmt::format("--fit_ranks: {} has no point of {} ranks; it has {}",
                                    curve.path, ranks, fmt::join(there, ", ")));
  if (left.size() < 2)
    throw ConfigError(fmt::format(
        "{}: {} rank count{} to fit, which says nothing of scaling; measure two or more, such as "
        "scalemark scale --ranks 1,2,4",
        curve.path, left.size(), left.size() == 1 ? "" : "s"));
  fit.most_ranks = *left.rbegin();
}

/// Median and range of one number of the draws.
template <typename Number>
FittedParameter over_draws(const ModelFit& fit, const std::string& name, const std::string& unit,
                           Number number) {
  std::vector<double> values;
  for (const ModelDraw& draw : fit.draws) values.push_back(number(draw.parameters));
  return {name, unit, median(values), {quantile(values, 0.05), quantile(values, 0.95)}, false, ""};
}

/// Whether the draws of a coordinate spread over less than the standard normal ones do.
bool narrowed(const std::vector<Coordinates>& draws, Coordinate coordinate) {
  std::vector<double> values;
  const bool folded = coordinate == kFixed || coordinate == kStraggler || coordinate == kWork ||
                      coordinate == kOnce;
  for (const Coordinates& at : draws)
    values.push_back(folded ? std::abs(at[coordinate]) : at[coordinate]);
  return standard_deviation(values) < kNarrowed * (folded ? 0.603 : 1);
}

class Describer {
 public:
  Describer(ModelFit& fit, const std::vector<Coordinates>& draws, const Priors& priors)
      : fit_(fit), draws_(draws), priors_(priors) {}

  void describe(const MeasuredCurve& curve) {
    add(over_draws(fit_, "compute", "s", [](const CostParameters& p) { return p.compute_seconds; }),
        true, "");
    add(over_draws(fit_, "fixed_share", "", [](const CostParameters& p) { return p.fixed_share; }),
        narrowed(draws_, kFixed), "assumed: half-normal of scale 5 %");
    add(over_draws(fit_, "straggler_deviation", "",
                   [](const CostParameters& p) { return p.straggler_deviation; }),
        narrowed(draws_, kStraggler),
        curve.step_deviation ? "assumed: half-normal, of the spread of the step times"
                             : "assumed: half-normal of scale 5 %");
    if (priors_.ranks_per_node > 1) add_node();
    add_link();
    add(over_draws(fit_, "overlap_efficiency", "",
                   [](const CostParameters& p) { return p.overlap; }),
        narrowed(draws_, kOverlap),
        curve.kind == "published" ? "assumed: 27 %, from 8 to 62 %"
                                  : "assumed: 88 %, from 62 to 97 %");
    add(over_draws(fit_, "link_latency", "s",
                   [](const CostParameters& p) { return p.network.link.latency_seconds; }),
        narrowed(draws_, kLatency), "assumed: about 20 us");
    if (priors_.once_from > 0)
      add(over_draws(fit_, "lost_once", "", [](const CostParameters& p) { return p.once; }),
          narrowed(draws_, kOnce), "assumed: half-normal of scale 10 %");
    if (priors_.work_scale > 0)
      add(over_draws(fit_, "communication_work", "ns/byte",
                     [](const CostParameters& p) { return 1e9 * p.network.work_seconds_per_byte; }),
          narrowed(draws_, kWork), "assumed: half-normal of scale 1 ns");
  }

 private:
  void add(FittedParameter parameter, bool fitted, const std::string& otherwise) {
    parameter.fitted = fitted;
    parameter.origin = fitted ? "fitted to the curve" : otherwise;
    fit_.parameters.push_back(std::move(parameter));
  }

  void add_node() {
    add(over_draws(fit_, "node_rate", "Gbit/s",
                   [](const CostParameters& p) { return 8e-9 / p.network.node.seconds_per_byte; }),
        narrowed(draws_, kNodeRate), "assumed: about 80 Gbit/s between ranks of a node");
  }

  void add_link() {
    const bool fitted = narrowed(draws_, kLinkRate);
    const std::string assumed =
        fit_.link_gbit
            ? fmt::format("assumed: about half of the nominal {:g} Gbit/s", *fit_.link_gbit)
            : "assumed: about 10 Gbit/s, within a factor of 10";
    add(over_draws(fit_, "link_rate", "Gbit/s",
                   [](const CostParameters& p) { return 8e-9 / p.network.link.seconds_per_byte; }),
        fitted, assumed);
    if (fitted) return;
    fit_.warnings.push_back(
        fmt::format("the fitted points do not tell the rate between nodes ({}); {}", assumed,
                    fit_.link_gbit ? "more ranks on more nodes would"
                                   : "--measured_link_gbit says what the network nominally has"));
  }

  ModelFit& fit_;
  const std::vector<Coordinates>& draws_;
  const Priors& priors_;
};

/// The rank count at which the step grew most, for each doubling; 0 for a curve of unlike batches,
/// or where a baseline tells what ranks compute.
std::int64_t steepest(const std::vector<CurvePoint>& points) {
  if (has_unlike_batches(points)) return 0;
  double most = 0;
  std::int64_t at = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].baseline_step_seconds) return 0;
    const double grown = std::log(step_seconds_of(points[i]) / step_seconds_of(points[i - 1])) /
                         doublings(points[i - 1].ranks, points[i].ranks);
    if (grown > most) most = grown, at = points[i].ranks;
  }
  return at;
}

Priors priors_of(const ModelFit& fit, const MeasuredCurve& curve, const FitQuestions& questions) {
  Priors priors;
  const CurvePoint& first = fit.points.front();
  priors.first_compute_seconds = step_seconds_of(first);
  priors.reference_batch = first.batch_per_rank;
  priors.ranks_per_node = questions.ranks_per_node.value_or(curve.ranks_per_node.value_or(1));
  if (curve.step_deviation) priors.straggler_scale = std::clamp(*curve.step_deviation, 0.01, 0.2);
  if (curve.cpu)
    priors.work_scale = kWorkScale, priors.sum_seconds_per_byte = kSumSecondsPerByteCpu;
  if (curve.kind == "published") priors.overlap_middle = kOverlapPublished;
  priors.once_from = steepest(fit.points);
  if (fit.link_gbit) priors.link = {kLinkShare.median * *fit.link_gbit, kLinkShare.spread};
  return priors;
}

}  // namespace

double step_seconds_of(const CurvePoint& point) { return mean(point.step_seconds); }

double compute_factor(const ModelFit& fit, const ModelDraw& draw, std::int64_t ranks) {
  double factor = 1;
  for (const CurvePoint& point : fit.points)
    if (point.baseline_step_seconds && point.ranks <= ranks)
      factor =
          *point.baseline_step_seconds /
          (draw.parameters.compute_seconds * share_of_batch(draw.parameters, point.batch_per_rank));
  return factor;
}

ModelFit fit_model(const MeasuredCurve& curve, const FitQuestions& questions) {
  if (curve.buckets.shard.divides && !has_half(questions.algorithm))
    throw ConfigError(fmt::format(
        "--algorithm {}: {} was measured with --shard {}, whose reduce-scatters and all-gathers "
        "are no trees or doublings; take auto, ring or hierarchical",
        to_string(questions.algorithm), curve.path, *curve.shard));
  ModelFit fit;
  divide_points(fit, curve, questions);
  fit.buckets = curve.buckets;
  fit.constants = questions.constants;
  fit.algorithm = questions.algorithm;
  fit.link_gbit = questions.link_gbit ? questions.link_gbit : curve.link_gbit;
  fit.reference_batch = fit.points.front().batch_per_rank;
  const Priors priors = priors_of(fit, curve, questions);
  const Likelihood likelihood(fit, priors);
  const auto coordinates = draw_coordinates(
      [&likelihood](const Coordinates& at) { return likelihood(at); }, kDraws, kSeed);
  for (const Coordinates& at : coordinates) fit.draws.push_back({priors.parameters(at)});
  fit.trend = curve_trend(fit.points, curve.scaling, priors.ranks_per_node, fit.constants);
  Describer(fit, coordinates, priors).describe(curve);
  fit.residuals = residuals_of(fit);
  warn_of_curve(fit, curve);
  if (!curve.ranks_per_node && !questions.ranks_per_node)
    fit.warnings.push_back(
        "how many ranks share a node is not known: each is taken for a node of its own; "
        "--ranks_per_node says otherwise");
  if (curve.kind == "rounds")
    fit.warnings.push_back(
        "the repeats are rounds of one launch: other launches may differ by more than the band");
  return fit;
}

}  // namespace scalemark
