// The keys of the scaling record.
#include "record/scaling.hpp"

#include "record/write.hpp"

namespace scalemark {
namespace record {

void CurveBase::describe(Fields& fields) {
  fields.add("ranks", &CurveBase::ranks, "smallest rank count").at_least(1);
  fields.add("throughput", &CurveBase::throughput, "of that point")
      .unit("units/s")
      .above(0)
      .known(Presence::only_when_ok);
}

void Trend::describe(Fields& fields) {
  fields.add("expected_efficiency", &Trend::expected_efficiency,
             "on the line between its neighbours, over the logarithm of the ranks");
  fields.add("dip", &Trend::dip, "whether the point lies below that line");
}

void PointTarget::describe(Fields& fields) {
  constexpr const char* kNotReached = "not every repeat came down to the target loss";
  fields.add("reached", &PointTarget::reached, "by every repeat");
  fields.add("steps", &PointTarget::steps, "to it, mean over the repeats, warm-up included")
      .above(0)
      .otherwise(kNotReached)
      .metric("target_steps", "steps", Better::lower);
  fields.add("seconds", &PointTarget::seconds, "likewise")
      .unit("s")
      .above(0)
      .otherwise(kNotReached)
      .metric("target_seconds", "seconds", Better::faster);
}

void CurveRepeat::describe(Fields& fields) {
  fields.add("run", &CurveRepeat::run, "id of its record").pattern(kUuidPattern);
  fields
      .add("path", &CurveRepeat::path, "of its record, relative to this file; null without a file")
      .filled();
  fields.add("repeat", &CurveRepeat::repeat, "its round, or the repeat of its sweep")
      .at_least(1)
      .since(5);
  fields.add("created_at", &CurveRepeat::created_at, "of its record: RFC 3339, UTC")
      .pattern(kTimePattern)
      .otherwise("its record does not tell it")
      .since(10);
  fields.add("baseline", &CurveRepeat::baseline, "whether it ran without communication");
  fields.add("units", &CurveRepeat::units, "of all measured steps of all ranks").at_least(0);
  fields.add("seconds", &CurveRepeat::seconds, "of the measured loop").unit("s").above(0);
  fields.add("throughput", &CurveRepeat::throughput, "`units` / `seconds`")
      .unit("units/s")
      .at_least(0);
}

void ExposedCollective::describe(Fields& fields) {
  using E = ExposedCollective;
  fields.add("collective", &E::collective, "that is left out")
      .one_of({"reduce_scatter", "allgather", "allreduce"});
  fields
      .add("exposed_seconds", &E::exposed_seconds,
           "mean step less that of the same ranks without it")
      .unit("s")
      .known(Presence::only_when_ok);
  fields
      .add("exposed_ci95", &E::exposed_ci95,
           "if it contains 0, `exposed_seconds` is not distinguishable from 0")
      .unit("s");
  fields.add("repeats", &E::repeats, "without it, one entry per run").known(Presence::when_ok);
}

namespace {

using P = ScalingPoint;

void describe_place(Fields& fields) {
  fields.add("ranks", &P::ranks, "of this point").at_least(1).column(15, "ranks");
  fields.add("batch_size_per_rank", &P::batch_size_per_rank, "of a step")
      .unit("samples")
      .at_least(1)
      .column(19, "batch_size_per_rank");
  fields.add("global_batch_size", &P::global_batch_size, "of a step")
      .unit("samples")
      .at_least(1)
      .column(20, "global_batch_size");
  fields.add("resources", &P::resources, "how many of `resource` it ran on").at_least(1);
}

void describe_rates(Fields& fields) {
  fields.add("throughput", &P::throughput, "all units / all seconds of the repeats")
      .unit("units/s")
      .above(0)
      .known(Presence::only_when_ok)
      .column(34, "throughput");
  fields.add("ci95", &P::ci95, "its 95 % interval over the repeats")
      .unit("units/s")
      .known(Presence::if_ok)
      .column(35, "throughput");
  fields.add("speedup", &P::speedup, "throughput against that of the base")
      .above(0)
      .known(Presence::only_when_ok)
      .column(41, "speedup");
  fields.add("speedup_ci95", &P::speedup_ci95, "over ratios paired by `repeat`")
      .known(Presence::if_ok)
      .column(42, "speedup");
  fields.add("efficiency", &P::efficiency, "`speedup` / ratio of the `resources`")
      .above(0)
      .known(Presence::if_ok)
      .column(44, "efficiency");
  fields.add("efficiency_ci95", &P::efficiency_ci95, "likewise")
      .known(Presence::if_ok)
      .column(45, "efficiency");
}

void describe_communication(Fields& fields) {
  fields
      .add("baseline_throughput", &P::baseline_throughput,
           "of the same ranks without communication")
      .unit("units/s")
      .above(0)
      .known(Presence::if_ok)
      .column(40, "baseline_throughput");
  fields.add("exposed_seconds", &P::exposed_seconds, "as in the run record, over all repeats")
      .unit("s")
      .column(59, "exposed_seconds")
      .metric("exposed_seconds", "seconds/step", Better::lower);
  fields
      .add("exposed_ci95", &P::exposed_ci95,
           "if it contains 0, `exposed_seconds` is not distinguishable from 0")
      .unit("s")
      .since(3);
  fields.add("trend", &P::trend, "of a point between two others").known(Presence::if_ok);
  fields.add("exposed_method", &P::exposed_method, "as in the run record")
      .one_of({"baseline", "wait"})
      .column(60, "exposed_method");
  fields
      .add("exposed_collectives", &P::exposed_collectives,
           "with `--shard`: what each collective adds to a step, by leaving it alone out")
      .since(12);
}

void describe_solution(Fields& fields) {
  fields
      .add("time_to_solution_seconds", &P::time_to_solution_seconds,
           "`solution_steps` times the mean step")
      .unit("s")
      .above(0)
      .known(Presence::if_ok)
      .metric("time_to_solution", "seconds", Better::faster);
  fields
      .add("time_to_solution_speedup", &P::time_to_solution_speedup, "time of the base / this one")
      .above(0)
      .known(Presence::if_ok);
  fields.add("time_to_solution_speedup_ci95", &P::time_to_solution_speedup_ci95, "as of `speedup`")
      .known(Presence::if_ok);
  fields
      .add("time_to_solution_efficiency", &P::time_to_solution_efficiency,
           "that speedup / ratio of the `resources`")
      .above(0)
      .known(Presence::if_ok);
  fields.add("target", &P::target, "null without `--target_loss`").known(Presence::if_ok);
}

}  // namespace

void ScalingPoint::describe(Fields& fields) {
  describe_place(fields);
  describe_rates(fields);
  describe_communication(fields);
  describe_solution(fields);
  fields.add("repeats", &P::repeats, "one entry per run").known(Presence::when_ok);
}

}  // namespace record

void ScalingCurve::describe(Fields& fields) {
  using C = ScalingCurve;
  Envelope::describe(fields, "scaling");
  fields.add("unit", &C::unit, "of rates").one_of(record::unit_words());
  fields.add("scaling", &C::scaling, "what stays the same as ranks are added");
  fields.add("resource", &C::resource, "what efficiency divides by");
  fields
      .add("repeat_unit", &C::repeat_unit,
           "`in_process`: repeats within one launch, or `launch` ([from a "
           "sweep](sweep.md#curves))")
      .column(33, "repeat_unit", "`launch` or `in_process`");
  fields
      .add("settings", &C::settings,
           "of the sweep that the launches come from, those that all points share; else empty")
      .since(5)
      .otherwise("taken away from the launches")
      .column(9, "settings");
  fields
      .add("failed_launches", &C::failed_launches,
           "of that sweep, at the settings of this curve; `gate` and `compare` count them as "
           "failures")
      .at_least(0)
      .since(6);
  fields.add("kept_rounds", &C::kept_rounds, "rounds kept from an earlier command that was ended")
      .at_least(0)
      .since(3);
  fields.add("base", &C::base, "what speedups are against");
  fields
      .add("points", &C::points,
           "by ascending `ranks` ([formulas](measurements.md#a-curve)); rates, speedups and "
           "efficiencies are null unless `status` is `ok`")
      .known(Presence::when_ok);
  fields.add("config", &C::config, "every configuration key").filled().keys(record::kKeyPattern);
  fields
      .add("config_hash", &C::config_hash,
           "SHA-256 of the keys that decide what is measured and of the world size")
      .pattern(record::kSha256Pattern);
  fields.add("preflight", &C::preflight, "of `--preflight FILE`")
      .otherwise("no preflight record was named: --preflight FILE");
  fields.add("system", &C::system, "the machine of rank 0");
  fields
      .add("environment", &C::environment, "variables of libraries, without [secrets](security.md)")
      .keys(record::kVariablePattern)
      .each(0, 1024);
}

Json curve_json(const ScalingCurve& curve) {
  return record_json(curve, "the curve is not complete: " + curve.reason);
}

}  // namespace scalemark
