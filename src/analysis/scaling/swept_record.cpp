// The scaling record of launches: what docs/schema/scaling.schema.json asks for, from the records
// of a sweep.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "analysis/compare/match_sets.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/scaling/swept_curves.hpp"
#include "config/json_text.hpp"
#include "config/text.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {

std::vector<const SweptRun*> all_runs(const SweptCurve& curve) {
  std::vector<const SweptRun*> all = curve.runs;
  all.insert(all.end(), curve.baselines.begin(), curve.baselines.end());
  return all;
}

/// The batch that the scaling mode fixes, of the run; the other one follows from the ranks.
void fix_batch(ResolvedConfig& config, const Json& run) {
  config.largest_batch = false;
  config.batch_size.reset();
  config.global_batch_size.reset();
  config.global_batch_tokens.reset();
  if (config.scaling == Scaling::strong)
    config.global_batch_size = run.at("global_batch_size").get<std::int64_t>();
  else
    config.batch_size = run.at("batch_size_per_rank").get<std::int64_t>();
}

Json per_node(const SweptRun& run) {
  return run.record.at("config").value("ranks_per_node", Json());
}

/// That of the largest run, with the points of the curve and what is asked of it.
LoadedConfig config_of(const SweptCurve& curve, const ResolvedConfig& asked) {
  const SweptRun& largest = *curve.runs.back();
  LoadedConfig loaded = config_from_json(largest.record.at("config"), Command::scale,
                                         largest.path.string() + ": /config");
  ResolvedConfig& config = loaded.config;
  fix_batch(config, largest.record);
  const auto ranks = curve.ranks();
  config.ranks.assign(ranks.begin(), ranks.end());
  config.repeats = 1;
  for (const SweptRun* run : curve.runs) {
    config.repeats = std::max(config.repeats, run->entry.repeat);
    if (per_node(*run) != per_node(largest)) config.ranks_per_node.reset();
  }
  config.baseline = !curve.baselines.empty();
  config.repeat_unit = RepeatUnit::launch;
  config.resource = asked.resource;
  config.solution_steps = asked.solution_steps;
  config.base_solution_steps = asked.base_solution_steps;
  config.from = asked.from;
  config.output = asked.output;
  config.json = asked.json;
  return loaded;
}

RecordContext context_of(const SweptCurve& curve, const ResolvedConfig& asked) {
  const Json& record = curve.runs.back()->record;
  RecordContext context{config_of(curve, asked), {record.at("system"), {}}, {}};
  for (const auto& [path, reason] : record.at("unavailable").items())
    if (path.starts_with("system")) context.system.unavailable[path] = reason;
  for (const auto& [name, value] : record.at("environment").items())
    context.environment[name] = value;
  context.preflight = record.at("preflight");
  return context;
}

/// Where it will lie; empty without a file.
std::string path_beside(const std::filesystem::path& run,
                        const std::optional<std::string>& output) {
  if (!output) return "";
  const auto folder = std::filesystem::absolute(*output).parent_path();
  return std::filesystem::absolute(run).lexically_proximate(folder).lexically_normal().string();
}

std::vector<PointRuns> points_of(const SweptCurve& curve, const ResolvedConfig& asked) {
  std::vector<PointRuns> points;
  for (const int ranks : curve.ranks()) points.push_back({ranks, {}, {}});
  for (const SweptRun* run : all_runs(curve)) {
    const auto point = std::ranges::find(points, run->ranks, &PointRuns::ranks);
    if (point == points.end()) continue;  // a baseline of no point
    PointRepeat repeat = run->repeat;
    repeat.run_path = path_beside(run->path, asked.output);
    (repeat.baseline ? point->baselines : point->repeats).push_back(std::move(repeat));
  }
  return points;
}

/// "cpu_model: A (n0), B (n1)": efficiency compares unlike machines then.
std::vector<std::string> unlike_machines(const SweptCurve& curve) {
  std::vector<std::string> sentences;
  std::map<std::string, std::set<Json>> values;
  for (const SweptRun* run : all_runs(curve)) {
    const Json machine = machine_of(run->record.at("system"));
    for (const auto& [name, value] : machine.items()) values[name].emplace(value);
  }
  for (const auto& [name, several] : values) {
    if (several.size() < 2) continue;
    std::vector<std::string> words;
    for (const Json& value : several) words.push_back(plain_value(value));
    sentences.push_back(
        fmt::format("launches ran on unlike machines: {} is {}", name, join(words, "; ")));
  }
  return sentences;
}

/// Where a rank computes with other threads at another rank count, as it does with an equal share
/// of a host's cores.
std::string unequal_threads(const SweptCurve& curve) {
  std::map<int, std::set<std::int64_t>> threads;  // [ranks]
  for (const SweptRun* run : curve.runs)
    for (const Json& rank : run->record.at("ranks"))
      threads[run->ranks].insert(rank.at("threads").get<std::int64_t>());
  std::vector<std::string> words;
  for (const auto& [ranks, several] : threads)
    words.push_back(fmt::format("{} at {}", fmt::join(several, " or "),
                                counted(static_cast<std::size_t>(ranks), "rank")));
  const bool alike = std::ranges::all_of(
      threads, [&](const auto& one) { return one.second == threads.begin()->second; });
  if (alike) return "";
  return fmt::format(
      "threads of a rank change along the curve: {}; for equal ones set cpus_per_rank in the plan, "
      "or count --resource core",
      join(words, ", "));
}

}  // namespace

Json make_swept_record(const SweptCurve& curve, const ResolvedConfig& asked) {
  NoiseSummary noise;
  for (const SweptRun* run : all_runs(curve)) noise.add(run->record);
  Json record =
      make_scaling_record(context_of(curve, asked), *curve.ranks().rbegin(),
                          points_of(curve, asked), noise, {Status::ok, ""}, RepeatUnit::launch);
  record["settings"] = curve.settings;
  record["build"] = curve.runs.back()->record.at("build");
  explain_nulls(record, "settings", "taken away from the launches");
  add_warnings(record, unlike_machines(curve));
  add_warnings(record, {unequal_threads(curve)});
  std::vector<diagnosis::RunEvidence> runs;
  for (const SweptRun* run : curve.runs) runs.push_back(diagnosis::run_evidence(run->record));
  diagnosis::add_findings(record, runs);
  return record;
}

}  // namespace scalemark
