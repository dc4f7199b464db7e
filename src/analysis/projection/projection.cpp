// See projection.hpp.
#include "analysis/projection/projection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/projection/prediction.hpp"
#include "error.hpp"

namespace scalemark {
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
    made_.base_ranks = base_.ranks;
    made_.base_throughput = throughput_of(base_);
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
    point.batch_per_rank = batch;
    point.global_batch = batch * static_cast<double>(ranks);
    const std::int64_t per_node =
        change_.ranks_per_node.value_or(fit_.draws.front().parameters.network.ranks_per_node);
    point.nodes = (ranks + per_node - 1) / per_node;
    const PredictedStep step = predict(fit_, change_, {batch, fit_.buckets}, ranks);
    point.step_seconds = step.seconds;
    point.parts = step.parts;
    point.throughput = inverse(step.seconds, units_per_step(batch, ranks));
    const double share =
        static_cast<double>(base_.ranks) / (static_cast<double>(ranks) * made_.base_throughput);
    point.efficiency = times(point.throughput, share);
    point.speedup = point.throughput.value / made_.base_throughput;
    add_nulls(point);
    if (as_measured()) compare(point);
    if (questions_.budget) add_solution(point);
    made_.points.push_back(std::move(point));
  }

  const CurvePoint* find(const std::vector<CurvePoint>& points, const ProjectedPoint& at) const {
    for (const CurvePoint& point : points)
      if (point.ranks == at.ranks && point.batch_per_rank == at.batch_per_rank) return &point;
    return nullptr;
  }

  void add_nulls(ProjectedPoint& point) const {
    const auto per_rank = [this](const CurvePoint& of) {
      return throughput_of(of) / static_cast<double>(of.ranks);
    };
    const auto ranks = static_cast<double>(point.ranks);
    point.nulls = {per_rank(fit_.points.back()) * ranks, per_rank(fit_.points.front()) * ranks};
  }

  void compare(ProjectedPoint& point) const {
    const CurvePoint* fitted = find(fit_.points, point);
    const CurvePoint* unseen = find(fit_.held_out, point);
    if (!fitted && !unseen) return;
    point.held_out = unseen != nullptr;
    point.measured = throughput_of(unseen ? *unseen : *fitted);
    point.error_percent = 100 * (point.throughput.value / *point.measured - 1);
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
    point.steps = steps_of(*questions_.budget, point.global_batch);
    point.solution_seconds = times(point.step_seconds, *point.steps);
    const Budget& base = questions_.base_budget.value_or(*questions_.budget);
    const double base_batch = base_.batch_per_rank * static_cast<double>(base_.ranks);
    point.solution_speedup =
        inverse(*point.solution_seconds, steps_of(base, base_batch) * step_seconds_of(base_));
  }

  void find_errors() {
    HeldOutErrors errors;
    for (const ProjectedPoint& point : made_.points) {
      if (!point.held_out) continue;
      const auto error = [&point](double predicted) {
        return 100 * std::abs(predicted / *point.measured - 1);
      };
      ++errors.points;
      errors.in_band += *point.measured >= point.throughput.band.lo &&
                        *point.measured <= point.throughput.band.hi;
      errors.model += error(point.throughput.value);
      errors.constant_efficiency += error(point.nulls.constant_efficiency);
      errors.linear += error(point.nulls.linear);
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
  const auto& most = std::ranges::max(points, {}, &ProjectedPoint::global_batch);
  if (most.global_batch <= samples) return std::nullopt;
  return fmt::format(
      "--budget in steps: a step of {} ranks has {:g} samples, one of {} measured has {:g}, so as "
      "many steps are {:.3g} x the training; --budget in samples or epochs asks for as much of it",
      most.ranks, most.global_batch, base.ranks, samples, most.global_batch / samples);
}

}  // namespace

std::string to_string(Budget::Unit unit) {
  switch (unit) {
    case Budget::Unit::epochs:
      return "epochs";
    case Budget::Unit::samples:
      return "samples";
    case Budget::Unit::units:
      return "tokens";
    case Budget::Unit::steps:
      break;
  }
  return "steps";
}

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

}  // namespace scalemark
