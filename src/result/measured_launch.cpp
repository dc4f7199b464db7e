// See measured_launch.hpp.
#include "result/measured_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/keys.hpp"
#include "error.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kLeastStepsOfDeviation = 20;

/// Keys of a configuration that decide what one point measures; how many points and rounds a curve
/// has is no matter of a point.
void add_configuration(MeasuredLaunch& launch, const Json& config) {
  for (const auto& [name, entry] : config.items()) {
    const Key* key = find_key(name);
    if (key && (key->role == Role::output || key->commands == Commands(Command::scale) ||
                key->traits.contains(Trait::implied)))
      continue;
    launch.keys[name] = entry.at("value");
    if (entry.at("origin") == "default") launch.defaults.insert(name);
  }
}

/// `source`: the run record, or the point of a curve.
void add_batch(MeasuredLaunch& launch, const Json& source) {
  const bool strong = launch.keys.contains("scaling") && launch.keys["scaling"] == "strong";
  for (const char* name : {"batch_size", "global_batch_size"}) {
    launch.keys.erase(name);
    launch.defaults.erase(name);
  }
  if (strong && source.contains("global_batch_size"))
    launch.keys["global_batch_size"] = source.at("global_batch_size");
  else
    launch.keys["batch_size"] = source.at("batch_size_per_rank");
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
Json threads_of(const Json& ranks) {
  Json threads;
  for (const Json& rank : ranks) {
    if (!threads.is_null() && threads != rank.at("threads")) return nullptr;
    threads = rank.at("threads");
  }
  return threads;
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

/// What the machine made of the configuration.
void add_machine(MeasuredLaunch& launch, const Json& run) {
  set_known(launch, "device", run.at("device"));
  set_known(launch, "num_intra_threads", threads_of(run.at("ranks")));
  std::set<std::string> hosts;
  for (const Json& rank : run.at("ranks")) hosts.insert(rank.at("host").get<std::string>());
  launch.keys["hosts"] = hosts.size();
  if (run.contains("communication"))
    for (const char* name : {"communicator", "transport"})
      set_known(launch, name, run["communication"].at(name));
  if (run.contains("fused")) set_known(launch, "fused", run["fused"]);
  for (const auto& [name, value] : run.at("environment").items())
    launch.environment[name] = value.get<std::string>();
  launch.host = run.at("system").at("host");
  launch.machine = machine_of(run.at("system"));
}

void add_metric(MeasuredLaunch& launch, const char* name, const Json& value) {
  if (value.is_number() && value.get<double>() > 0) launch.metrics[name] = value;
}

void add_metrics(MeasuredLaunch& launch, const Json& run) {
  if (run.contains("latency_seconds")) {
    const Json& latency = run["latency_seconds"];
    add_metric(launch, "latency_mean", latency.at("mean"));
    add_metric(launch, "latency_p50", latency.at("p50"));
    add_metric(launch, "latency_p99", latency.at("p99"));
  }
  if (run.contains("energy"))
    add_metric(launch, "joules_per_sample", run["energy"].at("joules_per_sample"));
}

/// Relative deviation of the step times of a run with enough of them to have one.
void add_step_deviation(MeasuredLaunch& launch, const Json& run) {
  if (!run.contains("step_seconds") || !run["step_seconds"].is_object()) return;
  std::vector<double> samples;
  for (const Json& sample : run["step_seconds"].at("samples"))
    if (sample.is_number()) samples.push_back(sample);
  if (samples.size() < kLeastStepsOfDeviation || !(median(samples) > 0)) return;
  launch.step_deviation = median_absolute_deviation_scaled(samples) / median(samples);
}

void add_baseline(MeasuredLaunch& launch, const Json& throughput) {
  if (throughput.is_number() && throughput.get<double>() > 0)
    launch.baseline_throughput = throughput.get<double>();
}

MeasuredLaunch start_launch(const Json& record, const fs::path& path) {
  MeasuredLaunch launch;
  launch.path = path;
  launch.id = record.at("id");
  launch.started_at = record.at("created_at");
  launch.revision = record.at("build").at("revision");
  launch.unit = record.at("unit");
  add_configuration(launch, record.at("config"));
  return launch;
}

MeasuredLaunch of_run(const Json& record, const fs::path& path) {
  MeasuredLaunch launch = start_launch(record, path);
  launch.ranks = record.at("world_size");
  launch.keys["kind"] = record.at("kind");
  launch.keys["ranks"] = launch.ranks;
  add_batch(launch, record);
  add_machine(launch, record);
  add_metrics(launch, record);
  add_step_deviation(launch, record);
  if (record.contains("communication"))
    add_baseline(launch, record["communication"].at("baseline_throughput"));
  const double seconds = record.at("wall_seconds");
  launch.repeats = {{record.at("throughput").at("mean").get<double>() * seconds, seconds}};
  return launch;
}

/// The first run record of a point that lies where the curve says; null where none does.
Json run_beside(const Json& point, const fs::path& folder) {
  for (const Json& repeat : point.at("repeats")) {
    if (repeat.at("baseline") == true || !repeat.at("path").is_string()) continue;
    const fs::path path = folder / repeat.at("path").get<std::string>();
    if (fs::exists(path)) return read_record(path);
  }
  return nullptr;
}

MeasuredLaunch of_point(const Json& curve, const Json& point, const fs::path& path) {
  MeasuredLaunch launch = start_launch(curve, path);
  launch.ranks = point.at("ranks");
  launch.keys["kind"] = "run";
  launch.keys["ranks"] = launch.ranks;
  add_batch(launch, point);
  const Json run = run_beside(point, path.parent_path());
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
    add_machine(launch, run);
    add_step_deviation(launch, run);
  }
  add_baseline(launch, point.at("baseline_throughput"));
  for (const Json& repeat : point.at("repeats"))
    if (repeat.at("baseline") == false)
      launch.repeats.push_back({repeat.at("units"), repeat.at("seconds")});
  return launch;
}

void check(const MeasuredLaunch& launch) {
  if (launch.repeats.empty()) throw std::invalid_argument("a point has no repeats");
  for (const Work& work : launch.repeats)
    if (!(work.units > 0) || !(work.seconds > 0))
      throw std::invalid_argument("no units or no seconds were measured");
}

}  // namespace

std::vector<MeasuredLaunch> measured_launches(const Json& record, const fs::path& path) {
  std::vector<MeasuredLaunch> launches;
  try {
    if (record.at("kind") == "scaling")
      for (const Json& point : record.at("points"))
        launches.push_back(of_point(record, point, path));
    else
      launches.push_back(of_run(record, path));
    std::ranges::for_each(launches, check);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw ResultError(fmt::format("record {}: not as docs/schema/{}.schema.json says: {}",
                                  path.string(), record.at("kind").get<std::string>(),
                                  error.what()));
  }
  return launches;
}

std::set<std::string> runs_of_curve(const Json& scaling_record) {
  std::set<std::string> ids;
  if (!scaling_record.contains("points") || !scaling_record["points"].is_array()) return ids;
  for (const Json& point : scaling_record["points"])
    for (const Json& repeat : point.value("repeats", Json::array()))
      ids.insert(repeat.value("run", std::string()));
  return ids;
}

}  // namespace scalemark
