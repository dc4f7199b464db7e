// The projection record: what docs/schema/projection.schema.json asks for.
#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/projection/projection.hpp"
#include "config/names.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

/// "step_seconds": the number, "step_seconds_band": what it lies in.
void set_predicted(Json& point, const std::string& key, const std::optional<Predicted>& predicted) {
  point[key] = predicted ? Json(predicted->value) : Json(nullptr);
  point[key + "_band"] = predicted ? Json(predicted->band) : Json(nullptr);
}

Json curve_json(const MeasuredCurve& curve) {
  return {{"path", curve.path},
          {"kind", curve.kind},
          {"source", null_if_empty(curve.source)},
          {"records", curve.records},
          {"left_out", curve.left_out},
          {"model", curve.model},
          {"unit", curve.unit},
          {"scaling", to_string(curve.scaling)},
          {"parameters", curve.parameters}};
}

Json measured_json(const CurvePoint& point, const MeasuredCurve& curve) {
  const double global_batch = point.batch_per_rank * static_cast<double>(point.ranks);
  return {{"ranks", point.ranks},
          {"batch_size_per_rank", point.batch_per_rank},
          {"step_seconds", step_seconds_of(point)},
          {"baseline_step_seconds", or_null(point.baseline_step_seconds)},
          {"throughput", global_batch * curve.units_per_sample / step_seconds_of(point)},
          {"repeats", point.step_seconds.size()}};
}

Json fit_json(const MeasuredCurve& curve, const ModelFit& fit) {
  Json made{{"points", Json::array()}, {"held_out", Json::array()}, {"parameters", Json::array()}};
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    made["points"].push_back(measured_json(fit.points[i], curve));
    made["points"].back()["residual_percent"] = 100 * fit.residuals[i].relative;
    made["points"].back()["assumed_error_percent"] = 100 * fit.residuals[i].assumed;
  }
  made["trend"] = {{"share", fit.trend.share},
                   {"shown_loss_percent", 100 * fit.trend.shown_loss},
                   {"loss_percent_per_doubling", 100 * fit.trend.loss_per_doubling}};
  for (const CurvePoint& point : fit.held_out)
    made["held_out"].push_back(measured_json(point, curve));
  for (const FittedParameter& parameter : fit.parameters)
    made["parameters"].push_back({{"name", parameter.name},
                                  {"unit", parameter.unit},
                                  {"value", parameter.value},
                                  {"range", parameter.range},
                                  {"fitted", parameter.fitted},
                                  {"origin", parameter.origin}});
  return made;
}

Json assumptions_json(const ModelFit& fit, const ProjectionQuestions& questions) {
  const CostParameters& any = fit.draws.front().parameters;
  return {{"algorithm", to_string(fit.algorithm)},
          {"overlap", to_string(fit.buckets.hiding)},
          {"backward_share", kBackwardShare},
          {"gradient_bytes", fit.buckets.gradient_bytes},
          {"bucket_bytes", fit.buckets.bucket_bytes},
          {"sum_seconds_per_byte", any.network.sum_seconds_per_byte},
          {"measured_link_gbit", or_null(fit.link_gbit)},
          {"link_gbit", or_null(questions.link_gbit)},
          {"link_latency_seconds", or_null(questions.link_latency_seconds)},
          {"ranks_per_node", questions.ranks_per_node.value_or(any.network.ranks_per_node)}};
}

Json budget_json(const std::optional<Budget>& budget) {
  if (!budget) return nullptr;
  return {{"amount", budget->amount}, {"unit", to_string(budget->unit)}};
}

Json point_json(const ProjectedPoint& point) {
  Json made{
      {"ranks", point.ranks},
      {"nodes", point.nodes},
      {"batch_size_per_rank", point.batch_per_rank},
      {"global_batch_size", point.global_batch},
      {"algorithm", point.ranks > 1 ? Json(to_string(point.parts.algorithm)) : Json(nullptr)}};
  set_predicted(made, "step_seconds", point.step_seconds);
  made["compute_seconds"] = point.parts.compute_seconds;
  made["straggler_seconds"] = point.parts.straggler_seconds;
  made["communication_seconds"] = point.parts.communication_seconds;
  made["exposed_seconds"] = point.parts.exposed_seconds;
  made["trend_seconds"] = point.parts.trend_seconds;
  set_predicted(made, "throughput", point.throughput);
  made["speedup"] = point.speedup;
  set_predicted(made, "efficiency", point.efficiency);
  made["measured_throughput"] = or_null(point.measured);
  made["error_percent"] = or_null(point.error_percent);
  made["held_out"] = point.held_out;
  made["constant_efficiency_throughput"] = point.nulls.constant_efficiency;
  made["linear_throughput"] = point.nulls.linear;
  made["solution_steps"] = or_null(point.steps);
  set_predicted(made, "time_to_solution_seconds", point.solution_seconds);
  set_predicted(made, "time_to_solution_speedup", point.solution_speedup);
  return made;
}

Json errors_json(const std::optional<HeldOutErrors>& errors) {
  if (!errors) return nullptr;
  return {{"points", errors->points},
          {"in_band", errors->in_band},
          {"model_percent", errors->model},
          {"constant_efficiency_percent", errors->constant_efficiency},
          {"linear_percent", errors->linear}};
}

void explain_nulls_of(Json& record) {
  const char* no_budget = "no --budget was asked for";
  const char* unmeasured = "the curve has no such point";
  const char* measured_network = "the network is the measured one";
  const char* no_baseline = "no run without communication was measured";
  for (const auto& [path, reason] : {
           std::pair{"curve.source", "measured, not published"},
           {"fit.points.baseline_step_seconds", no_baseline},
           {"fit.held_out.baseline_step_seconds", no_baseline},
           {"assumptions.measured_link_gbit", "nobody said what the network nominally has"},
           {"assumptions.link_gbit", measured_network},
           {"assumptions.link_latency_seconds", measured_network},
           {"points.algorithm", "one rank has nothing to communicate"},
           {"points.measured_throughput", unmeasured},
           {"points.error_percent", unmeasured},
           {"points.solution_steps", no_budget},
           {"points.time_to_solution_seconds", no_budget},
           {"points.time_to_solution_seconds_band", no_budget},
           {"points.time_to_solution_speedup", no_budget},
           {"points.time_to_solution_speedup_band", no_budget},
           {"errors",
            "every point of the curve was fitted, or none was asked for: --fit_ranks leaves some "
            "out"},
           {"budget", no_budget},
           {"base_budget", "that of all points"},
           {"samples_per_epoch", "no budget in epochs"},
       })
    explain_nulls(record, path, reason);
}

}  // namespace

Json make_projection_record(const MeasuredCurve& curve, const ModelFit& fit,
                            const ProjectionQuestions& questions, const Projection& projection) {
  Json record = envelope("projection", Status::ok);
  record["curve"] = curve_json(curve);
  record["confidence"] = kBandConfidence;
  record["base"] = {{"ranks", projection.base_ranks}, {"throughput", projection.base_throughput}};
  record["fit"] = fit_json(curve, fit);
  record["assumptions"] = assumptions_json(fit, questions);
  record["budget"] = budget_json(questions.budget);
  record["base_budget"] = budget_json(questions.base_budget);
  record["samples_per_epoch"] = or_null(questions.samples_per_epoch);
  record["points"] = Json::array();
  for (const ProjectedPoint& point : projection.points)
    record["points"].push_back(point_json(point));
  record["errors"] = errors_json(projection.errors);
  record["warnings"] = projection.warnings;
  record["unavailable"] = Json::object();
  explain_nulls_of(record);
  diagnosis::add_findings(record);
  return record;
}

}  // namespace scalemark
