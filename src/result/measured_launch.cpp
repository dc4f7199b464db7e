// Reads off typed records what comparing needs of each launch.
#include "result/measured_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <span>
#include <stdexcept>

#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"
#include "record/inference.hpp"
#include "record/instances.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "record/write.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kLeastStepsOfDeviation = 20;
constexpr int kMostRanks = 100'000'000;

/// Keys of a configuration that decide what one point measures; how many points and rounds a curve
/// has is no matter of a point.
void add_configuration(MeasuredLaunch& launch, const record::Settings& config) {
  for (const auto& [written, setting] : config) {
    const auto [name, value] = current_setting(written, setting.value);
    const Key* key = find_key(name);
    if (key && (key->role == Role::output || key->commands == Commands(Command::scale) ||
                key->traits.contains(Trait::implied)))
      continue;
    launch.keys[name] = value;
    if (setting.origin == "default") launch.defaults.insert(name);
  }
}

/// Adds the batch sizes of a run, or of the point of a curve.
void add_batch(MeasuredLaunch& launch, const Json& of_rank, const Json& global) {
  const bool strong = launch.keys.contains("scaling") && launch.keys["scaling"] == "strong";
  for (const char* name : {"batch_size", "global_batch_size"}) {
    launch.keys.erase(name);
    launch.defaults.erase(name);
  }
  if (strong && !global.is_null())
    launch.keys["global_batch_size"] = global;
  else
    launch.keys["batch_size"] = of_rank;
}

void set_known(MeasuredLaunch& launch, const std::string& name, const Json& value) {
  if (value.is_null()) {
    launch.keys.erase(name);
    launch.unknown.insert(name);
    return;
  }
  launch.keys[name] = value;
  launch.defaults.erase(name);
}

/// Returns the threads of the ranks of a run; null where they differ.
template <typename Rank>
Json threads_of(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks)
    if (rank.threads != ranks.front().threads) return nullptr;
  return ranks.empty() ? Json() : Json(ranks.front().threads);
}

void add_place(MeasuredLaunch& launch, const record::System& system,
               const Entries<std::string>& environment) {
  launch.environment.insert(environment.begin(), environment.end());
  launch.host = system.host;
  launch.machine = machine_of(system);
}

/// What the machine made of the configuration.
template <typename Run>
void add_machine(MeasuredLaunch& launch, const Run& run) {
  set_known(launch, "device", or_null(run.device));
  set_known(launch, "num_intra_threads", threads_of(run.ranks));
  std::set<std::string> hosts;
  for (const auto& rank : run.ranks) hosts.insert(rank.host);
  launch.keys["hosts"] = hosts.size();
  add_place(launch, run.system, run.environment);
}

/// Relative deviation of the step times of a run with enough of them to have one.
void add_step_deviation(MeasuredLaunch& launch, const RunResult& run) {
  if (!run.step_seconds) return;
  std::vector<double> samples = run.step_seconds->samples;
  std::erase_if(samples, [](double sample) { return !std::isfinite(sample); });
  if (samples.size() < kLeastStepsOfDeviation || !(median(samples) > 0)) return;
  launch.step_deviation = median_absolute_deviation_scaled(samples) / median(samples);
}

void add_baseline(MeasuredLaunch& launch, const Known<double>& throughput) {
  if (throughput && *throughput > 0) launch.baseline_throughput = *throughput;
}

/// A share is at most a whole step; exposed communication may come out below nothing.
void add_share(MeasuredLaunch& launch, const std::string& rule, StepShare share) {
  if (std::abs(share.share) <= 1) launch.shares[rule] = std::move(share);
}

template <typename Run>
void add_straggler_share(MeasuredLaunch& launch, const Run& run) {
  if (run.ranks.size() < 2) return;
  const auto is_one = [](const auto& rank) { return rank.straggler == true; };
  add_share(launch, "straggler",
            {std::ranges::any_of(run.ranks, is_one) ? 1.0 : 0.0, run.id, "/ranks", ""});
}

void add_shares(MeasuredLaunch& launch, const RunResult& run) {
  if (run.communication && run.communication->exposed_method && run.communication->exposed_seconds)
    add_share(launch, "link",
              {*run.communication->exposed_seconds / run.step_seconds->mean.value_or(NAN), run.id,
               "/communication/exposed_seconds", *run.communication->exposed_method});
  if (run.phases) {
    const record::PhaseValues& part = run.phases->fractions;
    add_share(launch, "input", {part.input, run.id, "/phases/fractions/input", ""});
    add_share(launch, "checkpoint", {part.checkpoint, run.id, "/phases/fractions/checkpoint", ""});
  }
  add_straggler_share(launch, run);
}

/// What a training alone tells.
void add_own(MeasuredLaunch& launch, const RunResult& run) {
  add_machine(launch, run);
  if (run.communication) {
    set_known(launch, "communicator", run.communication->communicator);
    set_known(launch, "transport", or_null(run.communication->transport));
  }
  add_step_deviation(launch, run);
  add_shares(launch, run);
  launch.diverged = run.loss && run.loss->diverged;
}

void add_own(MeasuredLaunch& launch, const InferenceResult& inference) {
  add_machine(launch, inference);
  // Of on and off the key kernels tells; folded is what a device without these operators makes.
  if (inference.fused == "folded") launch.keys["fused"] = "folded";
  add_straggler_share(launch, inference);
}

/// Adds the exposed share of a point with a baseline, whose numbers are those of all its rounds.
void add_exposed_share(MeasuredLaunch& launch, const ScalingCurve& curve,
                       const record::ScalingPoint& point) {
  if (!point.baseline_throughput || !point.throughput) return;
  add_share(
      launch, "link",
      {1 - *point.throughput / *point.baseline_throughput, curve.id,
       fmt::format("/points/{}/baseline_throughput", &point - curve.points.data()), "baseline"});
}

template <typename Run>
MeasuredLaunch of_run(const Run& run, const fs::path& path) {
  MeasuredLaunch launch = start_launch(run, run.config, path);
  launch.unit = run.unit.value_or("");
  if (run.preflight) launch.preflight_at = run.preflight->created_at;
  launch.ranks = ranks_of(run.world_size);
  set_kind(launch, run.kind);
  add_own(launch, run);
  add_metrics(launch, run);
  if (run.noise.foreign) launch.foreign = *run.noise.foreign;
  if constexpr (std::same_as<Run, RunResult>) {
    add_batch(launch, or_null(run.batch_size_per_rank), or_null(run.global_batch_size));
    if (run.communication) add_baseline(launch, run.communication->baseline_throughput);
  } else {
    add_batch(launch, or_null(run.batch_size_per_rank), nullptr);
  }
  const double seconds = run.wall_seconds.value_or(0);
  launch.repeats = {{run.throughput ? run.throughput->mean * seconds : 0, seconds}};
  return launch;
}

using Repeats = std::span<const record::CurveRepeat>;

/// The first run record of a point's repeats that lies where the curve says.
std::optional<RunResult> run_beside(Repeats repeats, const fs::path& folder) {
  for (const record::CurveRepeat& repeat : repeats)
    if (!repeat.baseline && repeat.path && fs::exists(folder / *repeat.path))
      return read_typed_record<RunResult>(folder / *repeat.path);
  return std::nullopt;
}

/// Forgets what a curve repeats as "auto" or unset, and a run alone knows.
void forget_found_by_run(MeasuredLaunch& launch) {
  for (const Key& key : all_keys())
    if (key.traits.contains(Trait::found_by_run) && recorded(key, Command::scale))
      set_known(launch, key.name, nullptr);
  for (const char* name : {"hosts", "transport"}) set_known(launch, name, nullptr);
}

/// `repeats`: of the point.
MeasuredLaunch of_point(const ScalingCurve& curve, const record::ScalingPoint& point,
                        Repeats repeats, const fs::path& path) {
  MeasuredLaunch launch = start_launch(curve, curve.config, path);
  launch.unit = curve.unit;
  if (curve.preflight) launch.preflight_at = curve.preflight->created_at;
  launch.ranks = ranks_of(point.ranks);
  set_kind(launch, "run");
  add_batch(launch, point.batch_size_per_rank, point.global_batch_size);
  const auto run = run_beside(repeats, path.parent_path());
  if (run) {
    add_own(launch, *run);
  } else {
    forget_found_by_run(launch);
    if (curve.environment)
      launch.environment.insert(curve.environment->begin(), curve.environment->end());
    if (curve.system) {
      launch.host = curve.system->host;
      launch.machine = machine_of(*curve.system);
    }
  }
  add_baseline(launch, point.baseline_throughput);
  if (curve.repeat_unit != RepeatUnit::launch) {
    add_metrics(launch, point);
    add_exposed_share(launch, curve, point);
  } else if (run) {
    add_metrics(launch, *run);  // the point's are of all its launches
  }
  for (const record::CurveRepeat& repeat : repeats)
    if (!repeat.baseline) launch.repeats.push_back(repeat);
  return launch;
}

/// A launch of its own each repeat, as the sweep that it comes from has it.
void add_launches_of(std::vector<MeasuredLaunch>& launches, const ScalingCurve& curve,
                     const record::ScalingPoint& point, const fs::path& path) {
  Json settings = Json::object();
  for (const auto& [name, value] : curve.settings) settings[name] = or_null(value);
  for (const record::CurveRepeat& repeat : point.repeats) {
    if (repeat.baseline) continue;
    if (repeat.repeat == 0)
      throw std::invalid_argument("a launch does not tell its repeat: older than revision 5");
    MeasuredLaunch launch = of_point(curve, point, {&repeat, 1}, path);
    launch.id = repeat.run;
    launch.sweep = curve.id;
    launch.repeat = repeat.repeat;
    // A curve of before it told the times of its launches has only its own.
    if (repeat.created_at) launch.started_at = *repeat.created_at;
    add_launch_settings(launch, settings);
    launches.push_back(std::move(launch));
  }
}

/// From the first start to the last end of the jobs: cumulative throughput is units over that.
Work work_side_by_side(const record::LaunchOfJobs& repeat) {
  double units = 0;
  for (const record::LaunchedJob& job : repeat.instances) units += job.units.value_or(NAN);
  return {units, units / repeat.throughput.value_or(NAN)};
}

MeasuredLaunch of_instances(const InstancesResult& result, const record::InstancesPoint& point,
                            const record::LaunchOfJobs& repeat, const fs::path& path) {
  MeasuredLaunch launch = start_launch(result, result.config, path);
  launch.unit = result.unit;
  for (const char* name : {"instances", "repeats", "launch_timeout"}) {
    launch.keys.erase(name);
    launch.defaults.erase(name);
  }
  set_kind(launch, "instances");
  launch.keys["instances"] = point.instances;
  launch.keys["ranks_per_instance"] = result.ranks_per_instance.value_or(1);  // of older records
  add_place(launch, result.system, result.environment);
  for (const char* name : {"device", "num_intra_threads", "hosts", "transport"})
    set_known(launch, name, nullptr);
  launch.repeats = {work_side_by_side(repeat)};
  if (repeat.sum_of_rates) launch.metrics[kSumOfRates] = *repeat.sum_of_rates;
  return launch;
}

using Launches = std::vector<MeasuredLaunch>;

Launches launches_of(const ScalingCurve& curve, const fs::path& path) {
  Launches launches;
  for (const record::ScalingPoint& point : curve.points)
    if (curve.repeat_unit == RepeatUnit::launch)
      add_launches_of(launches, curve, point, path);
    else
      launches.push_back(of_point(curve, point, point.repeats, path));
  return launches;
}

Launches launches_of(const InstancesResult& result, const fs::path& path) {
  Launches launches;
  for (const record::InstancesPoint& point : result.points)
    for (const record::LaunchOfJobs& repeat : point.repeats)
      launches.push_back(of_instances(result, point, repeat, path));
  return launches;
}

Launches launches_of(const Json& record, const fs::path& path) {
  const std::string kind = kind_of(record);
  if (kind == "scaling") return launches_of(record_from<ScalingCurve>(record), path);
  if (kind == "instances") return launches_of(record_from<InstancesResult>(record), path);
  if (kind == "run") return {of_run(record_from<RunResult>(record), path)};
  return {of_run(record_from<InferenceResult>(record), path)};
}

/// For whatever a reader stumbles over.
[[noreturn]] void refuse(const Json& record, const fs::path& path, const std::exception& error) {
  throw ResultError(fmt::format("record {}: not as docs/schema/{}.schema.json says: {}",
                                path.string(), kind_of(record), error.what()));
}

void add_ids(std::set<std::string>& ids, std::span<const record::LaunchOfJobs> repeats) {
  for (const record::LaunchOfJobs& repeat : repeats)
    for (const record::LaunchedJob& job : repeat.instances)
      if (job.run) ids.insert(*job.run);
}

/// What nobody measures: beyond it sums, products and quotients are no numbers any more.
constexpr double kLeast = 1e-18, kMost = 1e18;
/// Ranks, hosts, samples of a step.
constexpr double kMostCounted = 1e12;

void check_figure(const std::string& what, double figure) {
  if (figure != 0 && !(std::abs(figure) >= kLeast && std::abs(figure) <= kMost))
    throw std::invalid_argument(fmt::format("{} is {:g}; a figure lies between {:g} and {:g}", what,
                                            figure, kLeast, kMost));
}

/// A count that another program reads as a whole number.
void check_count(const MeasuredLaunch& launch, const char* name) {
  const auto found = launch.keys.find(name);
  if (found == launch.keys.end() || found->second.is_null()) return;
  const double count = found->second.is_number() ? found->second.get<double>() : 0;
  if (!(count >= 1 && count <= kMostCounted))
    throw std::invalid_argument(fmt::format("{} is {}, not a number from 1 to {:g}", name,
                                            shown_value(found->second), kMostCounted));
}

}  // namespace

void check_figures(const MeasuredLaunch& launch) {
  if (launch.repeats.empty()) throw std::invalid_argument("a point has no repeats");
  for (const Work& work : launch.repeats) {
    if (!(work.units > 0) || !(work.seconds > 0))
      throw std::invalid_argument("no units or no seconds were measured");
    check_figure("units", work.units);
    check_figure("seconds", work.seconds);
  }
  for (const auto& [name, value] : launch.metrics) check_figure(name, value);
  if (launch.baseline_throughput) check_figure("baseline_throughput", *launch.baseline_throughput);
  if (launch.step_deviation) check_figure("the deviation of step times", *launch.step_deviation);
  for (const char* name : {"ranks", "hosts", "batch_size", "global_batch_size"})
    check_count(launch, name);
}

int ranks_of(std::int64_t ranks) {
  if (ranks < 1 || ranks > kMostRanks)
    throw std::invalid_argument(
        fmt::format("{} ranks, where a launch has 1 to {}", ranks, kMostRanks));
  return static_cast<int>(ranks);
}

Json machine_of(const record::System& system) {
  const Json all = part_json(system);
  Json machine = Json::object();
  for (const char* name : kHardwareKeys) machine[name] = all.value(name, Json(nullptr));
  for (const char* name : kSoftwareKeys) machine[name] = all.value(name, Json(nullptr));
  // The kernel keeps a little more or less for itself from one boot to the next.
  if (system.memory_bytes)
    machine["memory_gib"] = std::llround(static_cast<double>(*system.memory_bytes) / (1 << 30));
  Json& gpus = machine["gpus"] = Json::array();
  for (const record::Gpu& gpu : system.gpus) gpus.push_back(or_null(gpu.name));
  return machine;
}

void set_kind(MeasuredLaunch& launch, const std::string& kind) {
  launch.keys["kind"] = kind;
  launch.keys["ranks"] = launch.ranks;
}

MeasuredLaunch start_launch(const record::Envelope& record, const record::Settings& config,
                            const fs::path& path) {
  MeasuredLaunch launch;
  launch.path = path;
  launch.id = record.id;
  launch.started_at = record.created_at;
  launch.revision = record.build.revision;
  launch.committed_at = record.build.committed_at.value_or("");
  add_configuration(launch, config);
  launch.keys["build_type"] = record.build.build_type;
  return launch;
}

std::vector<MeasuredLaunch> measured_launches(const Json& record, const fs::path& path) {
  try {
    Launches launches = launches_of(record, path);
    std::ranges::for_each(launches, check_figures);
    return launches;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse(record, path, error);
  }
}

namespace {

/// Adds the ids of all runs of a point, also of those without one collective.
void add_runs(std::set<std::string>& runs, const record::ScalingPoint& point) {
  for (const record::CurveRepeat& repeat : point.repeats) runs.insert(repeat.run);
  if (!point.exposed_collectives) return;
  for (const record::ExposedCollective& exposed : *point.exposed_collectives)
    for (const record::CurveRepeat& repeat : exposed.repeats) runs.insert(repeat.run);
}

}  // namespace

LaunchesWithin launches_within(const Json& record, const fs::path& path) {
  LaunchesWithin within;
  try {
    if (kind_of(record) == "scaling") {
      const auto curve = record_from<ScalingCurve>(record);
      for (const record::ScalingPoint& point : curve.points) add_runs(within.runs, point);
      within.failed = curve.failed_launches;
    } else if (kind_of(record) == "instances") {
      const auto result = record_from<InstancesResult>(record);
      for (const record::SlotAlone& slot : result.alone) add_ids(within.runs, slot.repeats);
      for (const record::InstancesPoint& point : result.points) add_ids(within.runs, point.repeats);
    }
  } catch (const RecordFault& fault) {
    refuse(record, path, fault);
  }
  return within;
}

}  // namespace scalemark
