// The keys of a projection record.
#include "record/projection.hpp"

namespace scalemark {
namespace record {

namespace {
constexpr const char* kNoBudget = "no --budget was asked for";
constexpr const char* kUnmeasured = "the curve has no such point";
constexpr const char* kMeasuredNetwork = "the network is the measured one";
}  // namespace

void FittedCurve::describe(Fields& fields) {
  fields.add("path", &FittedCurve::path, "file or folder").filled();
  fields.add("kind", &FittedCurve::kind, "`launches`, `rounds` of one launch, or `published`")
      .one_of({"launches", "rounds", "published"});
  fields.add("source", &FittedCurve::source, "of a published one")
      .otherwise("measured, not published");
  fields.add("records", &FittedCurve::records, "their ids").pattern(kUuidPattern);
  fields.add("left_out", &FittedCurve::left_out, "what was not fitted, and why").each(1);
  fields.add("model", &FittedCurve::model, "name").filled();
  fields.add("unit", &FittedCurve::unit, "of rates").one_of(unit_words());
  fields.add("scaling", &FittedCurve::scaling, "what stays the same as ranks are added");
  fields.add("shard", &FittedCurve::shard, "what is divided among the ranks: `--shard`")
      .one_of({"none", "optimizer", "gradients", "parameters"})
      .since(12);
  fields.add("parameters", &FittedCurve::parameters, "trainable").above(0);
}

void BasePoint::describe(Fields& fields) {
  fields.add("ranks", &BasePoint::ranks, "the fewest measured").at_least(1);
  fields.add("throughput", &BasePoint::throughput, "measured").unit("units/s").above(0);
}

void MeasuredPoint::describe(Fields& fields) {
  fields.add("ranks", &MeasuredPoint::ranks, "of this point").at_least(1);
  fields.add("batch_size_per_rank", &MeasuredPoint::batch_size_per_rank, "of a step")
      .unit("samples")
      .above(0);
  fields.add("step_seconds", &MeasuredPoint::step_seconds, "mean of the repeats")
      .unit("s")
      .above(0);
  fields
      .add("baseline_step_seconds", &MeasuredPoint::baseline_step_seconds, "without communication")
      .unit("s")
      .above(0)
      .otherwise("no run without communication was measured");
  fields.add("throughput", &MeasuredPoint::throughput, "of that step").unit("units/s").above(0);
  fields.add("repeats", &MeasuredPoint::repeats, "how many").at_least(1);
}

void FittedPoint::describe(Fields& fields) {
  MeasuredPoint::describe(fields);
  fields
      .add("residual_percent", &FittedPoint::residual_percent, "100 (measured step / model's - 1)")
      .unit("%")
      .since(3)
      .known(Presence::when_ok);
  fields
      .add("assumed_error_percent", &FittedPoint::assumed_error_percent,
           "what repeats and other launches let expect in 95 of 100 cases")
      .unit("%")
      .above(0)
      .since(3)
      .known(Presence::when_ok);
}

void FittedParameter::describe(Fields& fields) {
  fields.add("name", &FittedParameter::name, "of a [prior](projection.md#the-fit)").filled();
  fields.add("unit", &FittedParameter::unit, "of the value");
  fields.add("value", &FittedParameter::value, "median over the draws").at_least(0);
  fields.add("range", &FittedParameter::range, "that holds 90 % of the draws");
  fields.add("fitted", &FittedParameter::fitted, "whether the curve narrows the prior");
  fields.add("origin", &FittedParameter::origin, "of the value").filled();
}

void FittedTrend::describe(Fields& fields) {
  fields.add("share", &FittedTrend::share, "of the trend in predictions").within(0, 1);
  fields
      .add("shown_loss_percent", &FittedTrend::shown_loss_percent,
           "of the step per doubling, in the curve")
      .unit("%")
      .at_least(0);
  fields
      .add("loss_percent_per_doubling", &FittedTrend::loss_percent_per_doubling,
           "the part that is used")
      .unit("%")
      .at_least(0);
}

void Fit::describe(Fields& fields) {
  fields.add("points", &Fit::points, "fitted").size(2);
  fields.add("held_out", &Fit::held_out, "of the curve, unseen by the fit");
  fields.add("parameters", &Fit::parameters, "of the model").filled();
  fields.add("trend", &Fit::trend, "what the curve shows without a model")
      .since(3)
      .known(Presence::when_ok);
}

void Assumptions::describe(Fields& fields) {
  fields.add("algorithm", &Assumptions::algorithm, "of the collectives, as asked for")
      .one_of({"auto", "ring", "tree", "doubling", "hierarchical"});
  fields.add("overlap", &Assumptions::overlap, "`--overlap`").one_of({"none", "backward", "step"});
  fields.add("backward_share", &Assumptions::backward_share, "of the computation").above(0);
  fields.add("gradient_bytes", &Assumptions::gradient_bytes, "of a rank").unit("bytes").above(0);
  fields.add("bucket_bytes", &Assumptions::bucket_bytes, "of a rank").unit("bytes").above(0);
  fields.add("sum_seconds_per_byte", &Assumptions::sum_seconds_per_byte, "of adding gradients")
      .unit("s/byte")
      .at_least(0);
  fields.add("measured_link_gbit", &Assumptions::measured_link_gbit, "nominal")
      .unit("Gbit/s")
      .above(0)
      .otherwise("nobody said what the network nominally has");
  fields.add("link_gbit", &Assumptions::link_gbit, "`--link_gbit`")
      .unit("Gbit/s")
      .above(0)
      .otherwise(kMeasuredNetwork);
  fields.add("link_latency_seconds", &Assumptions::link_latency_seconds, "`--link_latency_us`")
      .unit("s")
      .above(0)
      .otherwise(kMeasuredNetwork);
  fields.add("ranks_per_node", &Assumptions::ranks_per_node, "that share a link").at_least(1);
}

void Budget::describe(Fields& fields) {
  fields.add("amount", &Budget::amount, "of training").above(0);
  fields.add("unit", &Budget::unit, "of the amount");
}

void ProjectedCollective::describe(Fields& fields) {
  using C = ProjectedCollective;
  fields.add("collective", &C::collective, "what ranks do together")
      .one_of({"allreduce", "reduce_scatter", "allgather"});
  fields.add("seconds", &C::seconds, "of its messages").unit("s").at_least(0);
  fields.add("exposed_seconds", &C::exposed_seconds, "of these, not hidden").unit("s").at_least(0);
}

void ProjectedPoint::describe(Fields& fields) {
  using P = ProjectedPoint;
  fields.add("ranks", &P::ranks, "of this point").at_least(1);
  fields.add("nodes", &P::nodes, "that they lie on").at_least(1);
  fields.add("batch_size_per_rank", &P::batch_size_per_rank, "of a step").unit("samples").above(0);
  fields.add("global_batch_size", &P::global_batch_size, "of a step").unit("samples").above(0);
  fields.add("algorithm", &P::algorithm, "of its allreduce or reduce-scatter")
      .one_of({"ring", "tree", "doubling", "hierarchical"})
      .otherwise("one rank has nothing to communicate");
  fields.add("step_seconds", &P::step_seconds, &Predicted::value, "predicted mean step")
      .unit("s")
      .above(0);
  fields.add("step_seconds_band", &P::step_seconds, &Predicted::band, "holds it with `confidence`")
      .unit("s");
  fields.add("compute_seconds", &P::compute_seconds, "part of it: mean rank").unit("s").at_least(0);
  fields.add("straggler_seconds", &P::straggler_seconds, "part of it: slowest rank beyond the mean")
      .unit("s")
      .at_least(0);
  fields.add("communication_seconds", &P::communication_seconds, "of all buckets")
      .unit("s")
      .at_least(0);
  fields.add("exposed_seconds", &P::exposed_seconds, "part of it: communication that is not hidden")
      .unit("s")
      .at_least(0);
  fields.add("collectives", &P::collectives, "the same, each by itself").since(12);
  fields.add("trend_seconds", &P::trend_seconds, "part of it: what the curve's trend adds")
      .unit("s")
      .since(3)
      .known(Presence::when_ok);
  fields.add("throughput", &P::throughput, &Predicted::value, "predicted").unit("units/s").above(0);
  fields.add("throughput_band", &P::throughput, &Predicted::band, "holds it with `confidence`")
      .unit("units/s");
  fields.add("speedup", &P::speedup, "over the base").above(0);
  fields.add("efficiency", &P::efficiency, &Predicted::value, "against the base").above(0);
  fields.add("efficiency_band", &P::efficiency, &Predicted::band, "holds it with `confidence`");
  fields.add("measured_throughput", &P::measured_throughput, "of this point in the curve")
      .unit("units/s")
      .above(0)
      .otherwise(kUnmeasured);
  fields.add("error_percent", &P::error_percent, "100 (predicted / measured - 1)")
      .unit("%")
      .otherwise(kUnmeasured);
  fields.add("held_out", &P::held_out, "measured, and not used by the fit");
  fields
      .add("constant_efficiency_throughput", &P::constant_efficiency_throughput,
           "of the largest fitted point x ratio of the ranks")
      .unit("units/s")
      .above(0);
  fields
      .add("linear_throughput", &P::linear_throughput,
           "of the smallest fitted point x ratio of the ranks")
      .unit("units/s")
      .above(0);
  fields.add("solution_steps", &P::solution_steps, "of the budget").above(0).otherwise(kNoBudget);
  const auto solution = [&](const char* key, const char* band, KnownPrediction P::*predicted,
                            const char* text, const char* unit) {
    fields.add(key, predicted, &KnownPrediction::value, text)
        .unit(unit)
        .above(0)
        .otherwise(kNoBudget);
    fields.add(band, predicted, &KnownPrediction::band, "holds it with `confidence`")
        .unit(unit)
        .otherwise(kNoBudget);
  };
  solution("time_to_solution_seconds", "time_to_solution_seconds_band",
           &P::time_to_solution_seconds, "of these steps", "s");
  solution("time_to_solution_speedup", "time_to_solution_speedup_band",
           &P::time_to_solution_speedup, "measured time of the base with its budget / this time",
           "");
}

void HeldOutErrors::describe(Fields& fields) {
  fields.add("points", &HeldOutErrors::points, "held out").at_least(1);
  fields.add("in_band", &HeldOutErrors::in_band, "of these").at_least(0);
  fields.add("model_percent", &HeldOutErrors::model, "mean absolute error of the throughput")
      .unit("%")
      .at_least(0);
  fields
      .add("constant_efficiency_percent", &HeldOutErrors::constant_efficiency,
           "the same of the largest fitted point's efficiency")
      .unit("%")
      .at_least(0);
  fields.add("linear_percent", &HeldOutErrors::linear, "the same of the smallest fitted point's")
      .unit("%")
      .at_least(0);
}

}  // namespace record

void ProjectionResult::describe(Fields& fields) {
  using R = ProjectionResult;
  Envelope::describe(fields, "projection", {"ok"});
  fields.add("curve", &R::curve, "what was fitted");
  fields.add("confidence", &R::confidence, "that a band holds the value, according to the model")
      .above(0)
      .below(1);
  fields.add("base", &R::base, "smallest measured rank count");
  fields.add("fit", &R::fit, "the curve and the model");
  fields.add("assumptions", &R::assumptions, "what was not fitted");
  fields.add("budget", &R::budget, "of training, `--budget`").otherwise(record::kNoBudget);
  fields.add("base_budget", &R::base_budget, "of the base, where it needs another")
      .otherwise("that of all points");
  fields.add("samples_per_epoch", &R::samples_per_epoch, "`--samples_per_epoch`")
      .above(0)
      .otherwise("no budget in epochs");
  fields.add("points", &R::points, "by `ranks`").filled();
  fields.add("errors", &R::errors, "over the points that were held out")
      .otherwise(
          "every point of the curve was fitted, or none was asked for: --fit_ranks leaves some "
          "out");
}

}  // namespace scalemark
