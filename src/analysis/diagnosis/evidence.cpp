// The evidence of each kind of record, and of two sets of launches. No other part of the diagnosis
// knows how a record is written.
#include "analysis/diagnosis/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "analysis/diagnosis/record_view.hpp"
#include "record/comparison.hpp"
#include "record/measured.hpp"

namespace scalemark::diagnosis {
namespace {

RankEvidence rank_evidence(const RecordView& rank) {
  return {rank.number("rank"), rank.number("step_seconds_mean"), rank.number("wait_seconds_mean"),
          rank.text("host", 60), rank.is_true("straggler")};
}

DriftEvidence drift_evidence(const RecordView& run) {
  return {run.words("windows/drift/verdict"), run.number("windows/drift/change"),
          run.number("windows/drift/p"), run.bounds("windows/drift/ci95")};
}

/// What other processes used while this was measured; unknown where it is no more than usual.
Number foreign_cpus(const RecordView& run) {
  constexpr double kMostCpus = 1e6;
  const auto number = [&](const char* key) {
    return std::clamp(run.number(std::string("noise/foreign/") + key).value.value_or(0), 0.,
                      kMostCpus);
  };
  const record::ForeignLoad load{"", number("cpus"), static_cast<std::int64_t>(number("of_cpus")),
                                 number("seconds")};
  return load.notable() ? run.number("noise/foreign/cpus") : Number{};
}

/// Whose kernels computed; nothing where an older record does not tell.
std::string kernels_words(const std::string& kernels) {
  return kernels.empty() ? "" : kernels + " kernels";
}

/// Settings of a sweep that the name of a run says anyway.
bool is_in_name(const std::string& key) {
  constexpr std::array<std::string_view, 5> kInName{"model", "precision", "kernels", "ranks",
                                                    "batch_size"};
  return std::ranges::find(kInName, key) != kInName.end();
}

}  // namespace

std::string run_name(const Json& record, const Settings& settings) {
  constexpr int kMostSettings = 4;
  const RecordView run(record);
  std::string name = run.words("model", 60);
  const auto add = [&](const std::string& words, const char* between) {
    if (!words.empty()) name += (name.empty() ? "" : between) + words;
  };
  add(run.words("precision"), " ");
  if (const Number ranks = run.number("world_size")) {
    const Number batch = run.number("batch_size_per_rank");
    add(fmt::format("{:.0f} rank{}", *ranks, *ranks > 1 ? "s" : "") +
            (batch ? fmt::format(" x {:.0f}", *batch) : ""),
        " ");
  }
  add(kernels_words(run.words("kernels")), ", ");
  int told = 0;
  for (const auto& [key, value] : settings)
    if (!is_in_name(key) && told++ < kMostSettings) add(key + "=" + value, ", ");
  return name;
}

RunEvidence run_evidence(const Json& record, const Settings& settings) {
  const RecordView run(record);
  RunEvidence evidence{.id = run.id(),
                       .name = run_name(record, settings),
                       .ok = run.words("status") == "ok",
                       .world_size = run.number("world_size"),
                       .batch_size_per_rank = run.number("batch_size_per_rank"),
                       .throughput = run.number("throughput/mean"),
                       .step_seconds = run.number("step_seconds/mean"),
                       .communication_seconds = run.number("communication/total_seconds"),
                       .exposed_seconds = run.number("communication/exposed_seconds"),
                       .input_share = run.number("phases/fractions/input"),
                       .checkpoint_share = run.number("phases/fractions/checkpoint"),
                       .first_loss = run.number("loss/first"),
                       .last_loss = run.number("loss/last"),
                       .diverged = run.is_true("loss/diverged"),
                       .foreign_cpus = foreign_cpus(run),
                       .drift = drift_evidence(run),
                       .ranks = {}};
  for (const RecordView& rank : run.list("ranks")) evidence.ranks.push_back(rank_evidence(rank));
  return evidence;
}

namespace {

std::vector<RunEvidence> runs_of(const RecordView& point, const std::vector<RunEvidence>& runs) {
  std::set<std::string> ids;
  for (const RecordView& repeat : point.list("repeats"))
    if (!repeat.is_true("baseline")) ids.insert(repeat.words("run"));
  std::vector<RunEvidence> found;
  std::ranges::copy_if(runs, std::back_inserter(found),
                       [&](const RunEvidence& run) { return ids.contains(run.id); });
  return found;
}

std::vector<CollectiveEvidence> collectives_of(const RecordView& point) {
  std::vector<CollectiveEvidence> all;
  for (const RecordView& one : point.list("exposed_collectives"))
    all.push_back(
        {one.words("collective"), one.number("exposed_seconds"), one.bounds("exposed_ci95")});
  std::erase_if(all, [](const CollectiveEvidence& one) { return !one.exposed_seconds; });
  return all;
}

PointEvidence point_evidence(const RecordView& point, const std::vector<RunEvidence>& runs) {
  return {.ranks = point.number("ranks"),
          .resources = point.number("resources"),
          .throughput = point.number("throughput"),
          .speedup = point.number("speedup"),
          .efficiency = point.number("efficiency"),
          .baseline_throughput = point.number("baseline_throughput"),
          .exposed_seconds = point.number("exposed_seconds"),
          .expected_efficiency = point.number("trend/expected_efficiency"),
          .ci95 = point.bounds("ci95"),
          .efficiency_ci95 = point.bounds("efficiency_ci95"),
          .exposed_ci95 = point.bounds("exposed_ci95"),
          .dip = point.is_true("trend/dip"),
          .collectives = collectives_of(point),
          .runs = runs_of(point, runs)};
}

}  // namespace

std::string curve_name(const Json& record) {
  const RecordView curve(record);
  std::string name;
  for (const std::string& word :
       {curve.config("model"), curve.config("precision"), curve.words("scaling")})
    if (!word.empty()) name += (name.empty() ? "" : " ") + word;
  if (const std::string kernels = kernels_words(curve.config("kernels")); !kernels.empty())
    name += ", " + kernels;
  return name;
}

CurveEvidence curve_evidence(const Json& record, const std::vector<RunEvidence>& runs) {
  const RecordView curve(record);
  CurveEvidence evidence{.name = curve_name(record),
                         .unit = curve.words("unit"),
                         .scaling = curve.words("scaling"),
                         .of_launches = curve.words("repeat_unit") == "launch",
                         .wire_dtype = curve.config("wire_dtype"),
                         .overlap = curve.config("overlap"),
                         .shard = curve.config("shard"),
                         .points = {}};
  for (const RecordView& point : curve.list("points")) {
    const Number ranks = point.number("ranks"), throughput = point.number("throughput");
    if (ranks && *ranks > 0 && throughput && *throughput > 0)
      evidence.points.push_back(point_evidence(point, runs));
  }
  return evidence;
}

InferenceEvidence inference_evidence(const Json& record, const Settings& settings) {
  const RecordView inference(record);
  return {.name = run_name(record, settings),
          .p50 = inference.number("latency_seconds/p50"),
          .p99 = inference.number("latency_seconds/p99"),
          .holds = inference.flag("server/holds"),
          .overload = inference.words("server/ended_by") == "overload",
          .arrival_rate = inference.number("server/arrival_rate"),
          .quantile = inference.number("server/latency_quantile"),
          .at_quantile_seconds = inference.number("server/latency_at_quantile_seconds"),
          .bound_seconds = inference.number("server/latency_bound_seconds")};
}

InstancesEvidence instances_evidence(const Json& record) {
  const RecordView instances(record);
  InstancesEvidence evidence{
      instances.words("job") + " " + instances.words("model", 60), instances.words("unit"), {}};
  for (const RecordView& point : instances.list("points"))
    if (const Number efficiency = point.number("efficiency"))
      evidence.points.push_back(
          {point.number("instances"), efficiency, point.number("cumulative/mean")});
  return evidence;
}

ComparisonEvidence comparison_evidence(const Json& record) {
  using Point = record::ComparedPoint;
  const RecordView comparison(record);
  ComparisonEvidence evidence{comparison.words(&Comparison::base, 60), {}};
  for (const RecordView& point : comparison.list(&Comparison::points))
    evidence.points.push_back({.set = point.text(&Point::set, 60),
                               .verdict = point.words(&Point::verdict),
                               .ranks = point.number(&Point::ranks),
                               .difference_percent = point.number(&Point::difference_percent),
                               .p_adjusted = point.number(&Point::p_adjusted),
                               .repeats = point.number(&Point::repeats),
                               .repeats_needed = point.number(&Point::repeats_needed),
                               .interval_percent = point.bounds(&Point::interval_percent)});
  return evidence;
}

GateEvidence gate_evidence(const Json& record) {
  const RecordView gate(record);
  return {"gate", gate.words(&Verdict::verdict), gate.number(&Verdict::slowdown_percent),
          gate.number(&Verdict::repeats), gate.bounds(&Verdict::interval_percent)};
}

HistoryEvidence history_evidence(const Json& record) {
  using Change = record::HistoryChange;
  HistoryEvidence evidence;
  evidence.name = "history";
  for (const RecordView& change : RecordView(record).list(&HistoryResult::changes))
    evidence.changes.push_back({change.words(&Change::kind, 20), change.text(&Change::at, 60),
                                change.text(&Change::point, 60),
                                change.number(&Change::change_percent), change.number(&Change::p)});
  const RecordView history(record);
  evidence.newest_verdict = history.words("newest/verdict", 20);
  evidence.newest = history.text("newest/set", 60);
  evidence.slowdown_percent = history.number("newest/slowdown_percent");
  evidence.p = history.number("newest/p");
  return evidence;
}

ProjectionEvidence projection_evidence(const Json& record) {
  const RecordView projection(record);
  const std::string model = projection.words("curve/model", 60);
  return {model.empty() ? "projection" : "projection: " + model, projection.number("errors/points"),
          projection.number("errors/in_band"), projection.number("errors/model_percent")};
}

PreflightEvidence preflight_evidence(const Json& record) {
  PreflightEvidence evidence;
  for (const RecordView& check : RecordView(record).list("checks"))
    if (check.words("status") == "fail")
      evidence.failed.push_back({check.words("host", 60), check.text("message", 200)});
  return evidence;
}

namespace {

std::string evidence_words(const std::string& name) {
  if (name == "effect") return "the effect itself";
  if (name == "stand_in") return kStandIn;
  return name == "arithmetic" ? "arithmetic" : "evidence";
}

}  // namespace

StudyEvidence study_evidence(const Json& record) {
  const RecordView study(record);
  StudyEvidence evidence{"study: " + study.words("study", 60),
                         study.words("title"),
                         evidence_words(study.words("evidence")),
                         {}};
  for (const RecordView& figure : study.list("figures"))
    if (const std::string verdict = figure.words("verdict", 40); !verdict.empty())
      evidence.judged.push_back({figure.text("name"), verdict});
  return evidence;
}

namespace {

Number share_number(const StepShare& share) { return {share.share, share.record, share.pointer}; }

/// How a share was measured; that of a set is one, or it has none.
bool is_alike(const std::vector<const MeasuredLaunch*>& launches, const std::string& rule,
              const std::string& method) {
  for (const MeasuredLaunch* launch : launches) {
    const auto found = launch->shares.find(rule);
    if (found == launch->shares.end() || found->second.method != method) return false;
  }
  return true;
}

std::vector<Number> shares_of(const std::vector<const MeasuredLaunch*>& launches,
                              const std::string& rule) {
  std::vector<Number> shares;
  for (const MeasuredLaunch* launch : launches)
    shares.push_back(share_number(launch->shares.at(rule)));
  return shares;
}

}  // namespace

std::vector<SidesEvidence> sides_evidence(const std::vector<ResultSet>& sets,
                                          const Matching& matching) {
  std::vector<SidesEvidence> points;
  for (std::size_t set = 1; set < sets.size(); ++set)
    for (const MatchedPoint& point : matching.points) {
      const auto &base = point.launches.front(), &other = point.launches[set];
      if (base.empty() || other.empty()) continue;
      SidesEvidence sides{sets.front().label, sets[set].label,
                          static_cast<std::size_t>(point.ranks)};
      for (const auto& [rule, share] : base.front()->shares)
        if (is_alike(base, rule, share.method) && is_alike(other, rule, share.method))
          sides.shares[rule] = {shares_of(base, rule), shares_of(other, rule)};
      points.push_back(std::move(sides));
    }
  return points;
}

}  // namespace scalemark::diagnosis
