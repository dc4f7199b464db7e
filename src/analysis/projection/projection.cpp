// Predicts times and their bands from a fitted cost model.
#include "analysis/projection/projection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <set>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/projection/model_priors.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "json.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// What of the network is asked for instead of what was measured.
struct NetworkChange {
  std::optional<double> link_gbit, link_latency_seconds;
  std::optional<std::int64_t> ranks_per_node;
};

struct PredictedStep {
  Predicted seconds;
  StepCost parts;  ///< mean of the draws around the middle; sums to it
};

/// Published curves go up to this multiple of the ranks that were fitted.
constexpr std::int64_t kFarthestTrend = 16;

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

/// Of doublings of ranks beyond those that were fitted, and of the link's rate either way.
double drift(const ModelFit& fit, const NetworkChange& change, std::int64_t ranks) {
  double doublings =
      std::max(0., std::log2(static_cast<double>(ranks) / static_cast<double>(fit.most_ranks)));
  if (change.link_gbit && fit.link_gbit)
    doublings += std::abs(std::log2(*change.link_gbit / *fit.link_gbit));
  return fit.constants.drift_per_doubling * doublings;
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

void add(CollectiveSeconds& sum, const CollectiveSeconds& one) {
  sum.total += one.total;
  sum.exposed += one.exposed;
}

/// Returns, of draws in order of their step, the mean parts of the middle half as shares of its
/// step: they vary less from one rank count to the next than those of the draw in the middle.
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
    add(sum.sums, ordered[i].sums);
    add(sum.gathers, ordered[i].gathers);
  }
  const double scale = seconds / sum.seconds();
  parts.compute_seconds = scale * sum.compute_seconds;
  parts.straggler_seconds = scale * sum.straggler_seconds;
  parts.exposed_seconds = scale * sum.exposed_seconds;
  parts.communication_seconds = scale * sum.communication_seconds;
  parts.trend_seconds = scale * sum.trend_seconds;
  parts.sums = {scale * sum.sums.total, scale * sum.sums.exposed};
  parts.gathers = {scale * sum.gathers.total, scale * sum.gathers.exposed};
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
  if (ranks <= trend.most_ranks || trend.linearity == 0 || !is_unchanged(change) ||
      work.batch_per_rank != trend.batch_per_rank)
    return {};
  const std::int64_t farthest = kFarthestTrend * trend.most_ranks;
  if (ranks > farthest) model_seconds = median_seconds(costs_of(fit, change, work, farthest));
  ranks = std::min(ranks, farthest);
  return {trend_share(trend, ranks, fit.constants),
          std::log(trend_seconds(trend, ranks, fit.constants) / model_seconds)};
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

/// Median over the draws, beyond the fitted points leaning on the trend of the curve by its share:
/// of the measured network and batch alone, of others the curve shows nothing. The band adds what
/// no parameter holds: launches that differ, what the model misses of the fitted points, how far
/// trend and model are apart, and the tuned drift for every doubling beyond the largest fitted
/// point and of the link's rate.
PredictedStep predict(const ModelFit& fit, const NetworkChange& change, const StepWork& work,
                      std::int64_t ranks) {
  std::vector<StepCost> costs = costs_of(fit, change, work, ranks);
  const Leaning leaning = leaning_of(fit, change, work, ranks, median_seconds(costs));
  lean(costs, leaning);
  const double between =
      std::sqrt(leaning.share * (1 - leaning.share)) * std::abs(leaning.disagreement);
  const double missed = fit.largest_miss(median_seconds(costs)),
               drifted = drift(fit, change, ranks);
  const double deviation = std::sqrt(kLaunchDeviation * kLaunchDeviation + missed * missed +
                                     drifted * drifted + between * between);
  const Interval band = band_of(costs, deviation);
  const StepCost parts = middle_parts(costs);
  return {{parts.seconds(), band}, parts};
}

}  // namespace

Predicted predict_step(const ModelFit& fit, const StepWork& work, std::int64_t ranks) {
  return predict(fit, {}, work, ranks).seconds;
}

namespace {

/// Rank counts beyond this multiple of the fitted ones were never checked.
constexpr std::int64_t kCheckedMultiple = 8;
constexpr std::int64_t kLargestMultiple = 64;

/// A time is to a rate what a band's ends are to each other's.
Predicted inverse(const Predicted& of, double numerator) {
  return {numerator / of.value, {numerator / of.band.hi, numerator / of.band.lo}};
}

Predicted times(const Predicted& of, double factor) {
  return {of.value * factor, {of.band.lo * factor, of.band.hi * factor}};
}

class Projector {
 public:
  Projector(const MeasuredCurve& curve, const ModelFit& fit, const ProjectionQuestions& questions)
      : curve_(curve), fit_(fit), questions_(questions), base_(curve.points.front()) {
    change_ = {questions.link_gbit, questions.link_latency_seconds, questions.ranks_per_node};
    if (change_.link_gbit == fit.link_gbit) change_.link_gbit.reset();
    made_.base = {base_.ranks, throughput_of(base_)};
  }

  Projection project() {
    for (const std::int64_t ranks : rank_counts()) add(ranks, batch_at(ranks));
    find_errors();
    return std::move(made_);
  }

 private:
  /// Whether the questions change nothing of what was measured, so that predictions can be held
  /// against it.
  bool as_measured() const {
    return !change_.link_gbit && !change_.link_latency_seconds && !change_.ranks_per_node &&
           !questions_.batch_per_rank && !questions_.global_batch;
  }

  double units_per_step(double batch, std::int64_t ranks) const {
    return batch * static_cast<double>(ranks) * curve_.units_per_sample;
  }
  double throughput_of(const CurvePoint& point) const {
    return units_per_step(point.batch_per_rank, point.ranks) / step_seconds_of(point);
  }

  std::set<std::int64_t> rank_counts() const {
    if (!questions_.ranks.empty()) return {questions_.ranks.begin(), questions_.ranks.end()};
    std::set<std::int64_t> counts;
    for (const CurvePoint& point : curve_.points) counts.insert(point.ranks);
    const std::int64_t most = *counts.rbegin();
    for (std::int64_t factor = 2; factor <= kLargestMultiple; factor *= 2)
      if (batch_at(most * factor) >= 1) counts.insert(most * factor);
    return counts;
  }

  double batch_at(std::int64_t ranks) const {
    if (questions_.batch_per_rank) return *questions_.batch_per_rank;
    if (questions_.global_batch || curve_.scaling == Scaling::strong) {
      const double all =
          questions_.global_batch.value_or(base_.batch_per_rank * static_cast<double>(base_.ranks));
      return all / static_cast<double>(ranks);
    }
    for (const CurvePoint& point : curve_.points)
      if (point.ranks == ranks) return point.batch_per_rank;
    return curve_.points.back().batch_per_rank;
  }

  void add(std::int64_t ranks, double batch) {
    if (batch < 1)
      throw ConfigError(fmt::format(
          "{} ranks: a global batch of {:g} samples gives each less than one; ask for fewer ranks "
          "or a larger --global_batch_size",
          ranks, batch * static_cast<double>(ranks)));
    ProjectedPoint point;
    point.ranks = ranks;
    point.batch_size_per_rank = batch;
    point.global_batch_size = batch * static_cast<double>(ranks);
    const std::int64_t per_node =
        change_.ranks_per_node.value_or(fit_.draws.front().parameters.network.ranks_per_node);
    point.nodes = (ranks + per_node - 1) / per_node;
    const PredictedStep step = predict(fit_, change_, {batch, fit_.buckets}, ranks);
    set_step(point, step);
    point.throughput = inverse(step.seconds, units_per_step(batch, ranks));
    const double share =
        static_cast<double>(base_.ranks) / (static_cast<double>(ranks) * made_.base.throughput);
    point.efficiency = times(point.throughput, share);
    point.speedup = point.throughput.value / made_.base.throughput;
    add_nulls(point);
    if (as_measured()) compare(point);
    if (questions_.budget) add_solution(point);
    made_.points.push_back(std::move(point));
  }

  std::vector<record::ProjectedCollective> collectives_of(const StepCost& parts) const {
    const auto part = [](Collective collective, const CollectiveSeconds& of) {
      return record::ProjectedCollective{std::string(to_string(collective)), of.total, of.exposed};
    };
    if (!fit_.buckets.shard.divides)
      return {part(Collective::allreduce, {parts.communication_seconds, parts.exposed_seconds})};
    return {part(Collective::reduce_scatter, parts.sums),
            part(Collective::allgather, parts.gathers)};
  }

  void set_step(ProjectedPoint& point, const PredictedStep& step) const {
    point.step_seconds = step.seconds;
    point.collectives = collectives_of(step.parts);
    if (point.ranks > 1) point.algorithm = to_string(step.parts.algorithm);
    point.compute_seconds = step.parts.compute_seconds;
    point.straggler_seconds = step.parts.straggler_seconds;
    point.communication_seconds = step.parts.communication_seconds;
    point.exposed_seconds = step.parts.exposed_seconds;
    point.trend_seconds = step.parts.trend_seconds;
  }

  const CurvePoint* find(const std::vector<CurvePoint>& points, const ProjectedPoint& at) const {
    for (const CurvePoint& point : points)
      if (point.ranks == at.ranks && point.batch_per_rank == at.batch_size_per_rank) return &point;
    return nullptr;
  }

  void add_nulls(ProjectedPoint& point) const {
    const auto per_rank = [this](const CurvePoint& of) {
      return throughput_of(of) / static_cast<double>(of.ranks);
    };
    const auto ranks = static_cast<double>(point.ranks);
    point.constant_efficiency_throughput = per_rank(fit_.points.back()) * ranks;
    point.linear_throughput = per_rank(fit_.points.front()) * ranks;
  }

  void compare(ProjectedPoint& point) const {
    const CurvePoint* fitted = find(fit_.points, point);
    const CurvePoint* unseen = find(fit_.held_out, point);
    if (!fitted && !unseen) return;
    point.held_out = unseen != nullptr;
    point.measured_throughput = throughput_of(unseen ? *unseen : *fitted);
    point.error_percent = 100 * (point.throughput.value / *point.measured_throughput - 1);
  }

  double steps_of(const Budget& budget, double global_batch) const {
    switch (budget.unit) {
      case Budget::Unit::steps:
        return budget.amount;
      case Budget::Unit::epochs:
        return budget.amount * *questions_.samples_per_epoch / global_batch;
      case Budget::Unit::samples:
        return budget.amount / global_batch;
      case Budget::Unit::units:
        break;
    }
    return budget.amount / (global_batch * curve_.units_per_sample);
  }

  /// The base is what was measured, with its own batch.
  void add_solution(ProjectedPoint& point) const {
    point.solution_steps = steps_of(*questions_.budget, point.global_batch_size);
    const Predicted seconds = times(point.step_seconds, *point.solution_steps);
    point.time_to_solution_seconds = {seconds.value, seconds.band};
    const Budget& base = questions_.base_budget.value_or(*questions_.budget);
    const double base_batch = base_.batch_per_rank * static_cast<double>(base_.ranks);
    const Predicted speedup = inverse(seconds, steps_of(base, base_batch) * step_seconds_of(base_));
    point.time_to_solution_speedup = {speedup.value, speedup.band};
  }

  void find_errors() {
    HeldOutErrors errors;
    for (const ProjectedPoint& point : made_.points) {
      if (!point.held_out) continue;
      const auto error = [&point](double predicted) {
        return 100 * std::abs(predicted / *point.measured_throughput - 1);
      };
      ++errors.points;
      errors.in_band += *point.measured_throughput >= point.throughput.band.lo &&
                        *point.measured_throughput <= point.throughput.band.hi;
      errors.model += error(point.throughput.value);
      errors.constant_efficiency += error(point.constant_efficiency_throughput);
      errors.linear += error(point.linear_throughput);
    }
    if (errors.points == 0) return;
    const auto n = static_cast<double>(errors.points);
    for (double* sum : {&errors.model, &errors.constant_efficiency, &errors.linear}) *sum /= n;
    made_.errors = errors;
  }

  const MeasuredCurve& curve_;
  const ModelFit& fit_;
  const ProjectionQuestions& questions_;
  const CurvePoint& base_;
  NetworkChange change_;
  Projection made_;
};

void check_questions(const MeasuredCurve& curve, const ProjectionQuestions& questions) {
  if (questions.batch_per_rank && questions.global_batch)
    throw ConfigError("--batch_size and --global_batch_size: one follows from the other; give one");
  for (const auto& budget : {questions.budget, questions.base_budget}) {
    if (!budget) continue;
    if (budget->unit == Budget::Unit::epochs && !questions.samples_per_epoch)
      throw ConfigError(
          "--budget in epochs needs --samples_per_epoch, such as 1281167 of ImageNet's training "
          "set");
    if (budget->unit == Budget::Unit::units && curve.unit != "tokens/sec")
      throw ConfigError(
          fmt::format("--budget in tokens: {} counts {}; give steps, epochs or samples", curve.path,
                      curve.unit));
  }
  if (questions.base_budget && !questions.budget)
    throw ConfigError("--base_budget: needs the --budget that it is compared with");
}

/// Steps are no amount of training where each has more samples on more ranks.
std::optional<std::string> unlike_steps(const MeasuredCurve& curve,
                                        const ProjectionQuestions& questions,
                                        const std::vector<ProjectedPoint>& points) {
  if (!questions.budget || questions.budget->unit != Budget::Unit::steps || questions.base_budget)
    return std::nullopt;
  const CurvePoint& base = curve.points.front();
  const double samples = base.batch_per_rank * static_cast<double>(base.ranks);
  const auto& most = std::ranges::max(points, {}, &ProjectedPoint::global_batch_size);
  if (most.global_batch_size <= samples) return std::nullopt;
  return fmt::format(
      "--budget in steps: a step of {} ranks has {:g} samples, one of {} measured has {:g}, so as "
      "many steps are {:.3g} x the training; --budget in samples or epochs asks for as much of it",
      most.ranks, most.global_batch_size, base.ranks, samples, most.global_batch_size / samples);
}

}  // namespace

Projection project(const MeasuredCurve& curve, const ModelFit& fit,
                   const ProjectionQuestions& questions) {
  check_questions(curve, questions);
  Projection made = Projector(curve, fit, questions).project();
  made.warnings = fit.warnings;
  const std::int64_t most = made.points.back().ranks;
  if (most > kCheckedMultiple * fit.most_ranks)
    made.warnings.push_back(fmt::format(
        "{} ranks are {:.0f} x the largest fitted count: predictions were checked up to {} x", most,
        static_cast<double>(most) / static_cast<double>(fit.most_ranks), kCheckedMultiple));
  if (auto unlike = unlike_steps(curve, questions, made.points)) made.warnings.push_back(*unlike);
  if (questions.link_gbit && !fit.link_gbit)
    made.warnings.push_back(
        "the nominal rate of the measured network is not known: of --link_gbit about half is taken "
        "to be reached; --measured_link_gbit keeps the share that the curve shows");
  return made;
}

namespace {

record::MeasuredPoint measured_point(const CurvePoint& point, const MeasuredCurve& curve) {
  const double global_batch = point.batch_per_rank * static_cast<double>(point.ranks);
  return {point.ranks,
          point.batch_per_rank,
          step_seconds_of(point),
          {point.baseline_step_seconds, ""},
          global_batch * curve.units_per_sample / step_seconds_of(point),
          point.step_seconds.size()};
}

record::Fit told(const MeasuredCurve& curve, const ModelFit& fit) {
  record::Fit made;
  for (std::size_t i = 0; i < fit.points.size(); ++i)
    made.points.push_back({measured_point(fit.points[i], curve), 100 * fit.residuals[i].relative,
                           100 * fit.residuals[i].assumed});
  for (const CurvePoint& point : fit.held_out)
    made.held_out.push_back(measured_point(point, curve));
  made.parameters = fit.parameters;
  made.trend = record::FittedTrend{trend_share(fit.trend, 2 * fit.trend.most_ranks, fit.constants),
                                   100 * fit.trend.shown_loss, 100 * fit.trend.loss_per_doubling};
  return made;
}

record::Assumptions assumptions_of(const ModelFit& fit, const ProjectionQuestions& questions) {
  const CostParameters& any = fit.draws.front().parameters;
  return {to_string(fit.algorithm),
          to_string(fit.buckets.hiding),
          kBackwardShare,
          fit.buckets.gradient_bytes,
          fit.buckets.bucket_bytes,
          any.network.sum_seconds_per_byte,
          {fit.link_gbit, ""},
          {questions.link_gbit, ""},
          {questions.link_latency_seconds, ""},
          questions.ranks_per_node.value_or(any.network.ranks_per_node)};
}

}  // namespace

ProjectionResult make_projection_record(const MeasuredCurve& curve, const ModelFit& fit,
                                        const ProjectionQuestions& questions,
                                        const Projection& projection) {
  ProjectionResult result;
  set_envelope(result, "projection", {});
  result.warnings = projection.warnings;
  result.curve = curve;
  result.confidence = kBandConfidence;
  result.base = projection.base;
  result.fit = told(curve, fit);
  result.assumptions = assumptions_of(fit, questions);
  result.budget = {questions.budget, ""};
  result.base_budget = {questions.base_budget, ""};
  result.samples_per_epoch = {questions.samples_per_epoch, ""};
  result.points = projection.points;
  result.errors = projection.errors;
  diagnosis::add_findings(result);
  return result;
}

}  // namespace scalemark
