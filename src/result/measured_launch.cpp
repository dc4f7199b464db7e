// See measured_launch.hpp.
#include "result/measured_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>

#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"
#include "record/inference.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/write.hpp"
#include "result/schema_fault.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kLeastStepsOfDeviation = 20;
constexpr int kMostRanks = 100'000'000;

/// Keys of a configuration that decide what one point measures; how many points and rounds a curve
/// has is no matter of a point.
void add_configuration(MeasuredLaunch& launch, const Json& config) {
  for (const auto& [written, entry] : config.items()) {
    const auto [name, value] = current_setting(written, entry.at("value"));
    const Key* key = find_key(name);
    if (key && (key->role == Role::output || key->commands == Commands(Command::scale) ||
                key->traits.contains(Trait::implied)))
      continue;
    launch.keys[name] = value;
    if (entry.at("origin") == "default") launch.defaults.insert(name);
  }
}

/// Of a run, or of the point of a curve.
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

/// Of the ranks of a run; null where they differ.
template <typename Rank>
Json threads_of(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks)
    if (rank.threads != ranks.front().threads) return nullptr;
  return ranks.empty() ? Json() : Json(ranks.front().threads);
}

void add_place(MeasuredLaunch& launch, const Json& system,
               const Entries<std::string>& environment) {
  for (const auto& [name, value] : environment) launch.environment[name] = value;
  launch.host = system.at("host");
  launch.machine = machine_of(system);
}

/// What the machine made of the configuration. `system`: as it stands in the record.
template <typename Run>
void add_machine(MeasuredLaunch& launch, const Run& run, const Json& system) {
  set_known(launch, "device", or_null(run.device));
  set_known(launch, "num_intra_threads", threads_of(run.ranks));
  std::set<std::string> hosts;
  for (const auto& rank : run.ranks) hosts.insert(rank.host);
  launch.keys["hosts"] = hosts.size();
  add_place(launch, system, run.environment);
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
void add_own(MeasuredLaunch& launch, const RunResult& run, const Json& system) {
  add_machine(launch, run, system);
  if (run.communication) {
    set_known(launch, "communicator", run.communication->communicator);
    set_known(launch, "transport", or_null(run.communication->transport));
  }
  add_step_deviation(launch, run);
  add_shares(launch, run);
  launch.diverged = run.loss && run.loss->diverged;
}

void add_own(MeasuredLaunch& launch, const InferenceResult& inference, const Json& system) {
  add_machine(launch, inference, system);
  // Of on and off the key kernels tells; folded is what a device without these operators makes.
  if (inference.fused == "folded") launch.keys["fused"] = "folded";
  add_straggler_share(launch, inference);
}

/// Of a point with a baseline, whose numbers are of all its rounds.
void add_exposed_share(MeasuredLaunch& launch, const Json& curve, const Json& point) {
  const Json& without = point.at("baseline_throughput");
  if (!without.is_number() || !point.at("throughput").is_number()) return;
  std::size_t place = 0;
  while (curve.at("points")[place] != point) ++place;
  add_share(launch, "link",
            {1 - point["throughput"].get<double>() / without.get<double>(), curve.at("id"),
             fmt::format("/points/{}/baseline_throughput", place), "baseline"});
}

template <typename Run>
MeasuredLaunch of_run(const Json& record, const fs::path& path) {
  const Run run = record_from<Run>(record);
  MeasuredLaunch launch = start_launch(record, path);
  launch.ranks = ranks_of(run.world_size);
  launch.keys["kind"] = run.kind;
  launch.keys["ranks"] = launch.ranks;
  add_own(launch, run, record.at("system"));
  add_record_metrics(launch, record);
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

/// The first run record of a point's repeats that lies where the curve says; null where none does.
Json run_beside(const Json& repeats, const fs::path& folder) {
  for (const Json& repeat : repeats) {
    if (repeat.at("baseline") == true || !repeat.at("path").is_string()) continue;
    const fs::path path = folder / repeat.at("path").get<std::string>();
    if (fs::exists(path)) return read_record(path);
  }
  return nullptr;
}

/// `repeats`: of the point.
MeasuredLaunch of_point(const Json& curve, const Json& point, const Json& repeats,
                        const fs::path& path) {
  MeasuredLaunch launch = start_launch(curve, path);
  launch.ranks = ranks_of(point.at("ranks"));
  launch.keys["kind"] = "run";
  launch.keys["ranks"] = launch.ranks;
  add_batch(launch, point.at("batch_size_per_rank"), point.value("global_batch_size", Json()));
  const Json run = run_beside(repeats, path.parent_path());
  if (run.is_null()) {
    // With "auto" and unset values, which a curve repeats, a run alone knows these.
    for (const Key& key : all_keys())
      if (key.traits.contains(Trait::found_by_run) && recorded(key, Command::scale))
        set_known(launch, key.name, nullptr);
    for (const char* name : {"hosts", "transport"}) set_known(launch, name, nullptr);
    if (curve.at("environment").is_object())
      for (const auto& [name, value] : curve["environment"].items())
        launch.environment[name] = value.get<std::string>();
    if (curve.at("system").is_object()) {
      launch.host = curve["system"].at("host");
      launch.machine = machine_of(curve["system"]);
    }
  } else {
    add_own(launch, record_from<RunResult>(run), run.at("system"));
  }
  if (point.at("baseline_throughput").is_number())
    add_baseline(launch, point["baseline_throughput"].get<double>());
  if (curve.at("repeat_unit") != "launch") {
    add_point_metrics(launch, point);
    add_exposed_share(launch, curve, point);
  } else if (!run.is_null()) {
    add_record_metrics(launch, run);  // the point's are of all its launches
  }
  for (const Json& repeat : repeats)
    if (repeat.at("baseline") == false)
      launch.repeats.push_back({repeat.at("units"), repeat.at("seconds")});
  return launch;
}

/// A launch of its own each repeat, as the sweep that it comes from has it.
void add_launches_of(std::vector<MeasuredLaunch>& launches, const Json& curve, const Json& point,
                     const fs::path& path) {
  for (const Json& repeat : point.at("repeats")) {
    if (repeat.at("baseline") == true) continue;
    MeasuredLaunch launch = of_point(curve, point, Json::array({repeat}), path);
    launch.id = repeat.at("run");
    launch.sweep = curve.at("id");
    launch.repeat = repeat.at("repeat");
    // A curve of before it told the times of its launches has only its own.
    if (const Json created = repeat.value("created_at", Json()); created.is_string())
      launch.started_at = created;
    add_launch_settings(launch, curve.at("settings"));
    launches.push_back(std::move(launch));
  }
}

/// From the first start to the last end of the jobs: cumulative throughput is units over that.
Work work_side_by_side(const Json& repeat) {
  double units = 0;
  for (const Json& job : repeat.at("instances")) units += job.at("units").get<double>();
  return {units, units / repeat.at("throughput").get<double>()};
}

MeasuredLaunch of_instances(const Json& record, const Json& point, const Json& repeat,
                            const fs::path& path) {
  MeasuredLaunch launch = start_launch(record, path);
  for (const char* name : {"instances", "repeats", "launch_timeout"}) {
    launch.keys.erase(name);
    launch.defaults.erase(name);
  }
  launch.keys["kind"] = "instances";
  launch.keys["ranks"] = launch.ranks;
  launch.keys["instances"] = point.at("instances");
  const Json ranks = record.value("ranks_per_instance", Json());  // null in older records
  launch.keys["ranks_per_instance"] = ranks.is_null() ? Json(1) : ranks;
  launch.host = record.at("system").at("host");
  launch.machine = machine_of(record.at("system"));
  for (const auto& [name, value] : record.at("environment").items())
    launch.environment[name] = value.get<std::string>();
  for (const char* name : {"device", "num_intra_threads", "hosts", "transport"})
    set_known(launch, name, nullptr);
  launch.repeats = {work_side_by_side(repeat)};
  add_point_metrics(launch, repeat);
  return launch;
}

std::vector<MeasuredLaunch> launches_of(const Json& record, const fs::path& path) {
  std::vector<MeasuredLaunch> launches;
  if (record.at("kind") == "scaling") {
    for (const Json& point : record.at("points")) {
      if (record.at("repeat_unit") == "launch")
        add_launches_of(launches, record, point, path);
      else
        launches.push_back(of_point(record, point, point.at("repeats"), path));
    }
  } else if (record.at("kind") == "instances") {
    for (const Json& point : record.at("points"))
      for (const Json& repeat : point.at("repeats"))
        launches.push_back(of_instances(record, point, repeat, path));
  } else {
    launches.push_back(record.at("kind") == "run" ? of_run<RunResult>(record, path)
                                                  : of_run<InferenceResult>(record, path));
  }
  return launches;
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

int ranks_of(const Json& ranks) {
  const double number = ranks.get<double>();
  if (!(number >= 1 && number <= kMostRanks))
    throw std::invalid_argument(
        fmt::format("{} ranks, where a launch has 1 to {}", ranks.dump(), kMostRanks));
  return ranks.get<int>();
}

Json machine_of(const Json& system) {
  Json machine = Json::object();
  for (const char* name : kHardwareKeys) machine[name] = system.value(name, Json(nullptr));
  for (const char* name : kSoftwareKeys) machine[name] = system.value(name, Json(nullptr));
  // The kernel keeps a little more or less for itself from one boot to the next.
  const Json& bytes = system.at("memory_bytes");
  if (bytes.is_number()) machine["memory_gib"] = std::llround(bytes.get<double>() / (1 << 30));
  machine["gpus"] = Json::array();
  for (const Json& gpu : system.at("gpus")) machine["gpus"].push_back(gpu.at("name"));
  return machine;
}

MeasuredLaunch start_launch(const Json& record, const fs::path& path) {
  MeasuredLaunch launch;
  launch.path = path;
  launch.id = record.at("id");
  launch.started_at = record.at("created_at");
  launch.revision = record.at("build").at("revision");
  const Json committed = record["build"].value("committed_at", Json());
  if (committed.is_string()) launch.committed_at = committed;
  const Json preflight = record.value("preflight", Json());
  if (preflight.is_object()) launch.preflight_at = preflight.at("created_at");
  launch.unit = record.value("unit", Json("")).get<std::string>();
  add_configuration(launch, record.at("config"));
  launch.keys["build_type"] = record["build"].at("build_type");
  return launch;
}

std::vector<MeasuredLaunch> measured_launches(const Json& record, const fs::path& path) {
  std::vector<MeasuredLaunch> launches;
  try {
    launches = launches_of(record, path);
    std::ranges::for_each(launches, check_figures);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string kind = record.at("kind");
    throw ResultError(fmt::format("record {}: not as docs/schema/{}.schema.json says: {}",
                                  path.string(), kind, why_not(record, kind, error)));
  }
  return launches;
}

std::set<std::string> runs_within(const Json& record) {
  std::set<std::string> ids;
  const auto add = [&](const Json& one) {
    if (one.contains("run") && one["run"].is_string()) ids.insert(one["run"].get<std::string>());
  };
  for (const char* part : {"alone", "points"})
    for (const Json& point : record.value(part, Json::array()))
      for (const Json& repeat : point.value("repeats", Json::array())) {
        add(repeat);
        for (const Json& job : repeat.value("instances", Json::array())) add(job);
      }
  return ids;
}

}  // namespace scalemark
