// See scale_job.hpp.
#include "launch/scale_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "config/curves.hpp"
#include "config/names.hpp"
#include "launch/dry_run.hpp"
#include "launch/engine_start.hpp"
#include "launch/job.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

void say(const std::string& text) { std::fprintf(stderr, "scalemark: %s\n", text.c_str()); }

/// The job could not write its record itself: what there was, with the reason.
void publish_partial(const RunConfig& config, const HandoverFolder& handover, ExitCode code,
                     const std::string& reason) {
  const auto partial = handover.partial();
  if (!partial) return;
  Json records = partial->at("finished");
  if (Json record = partial->at("record"); !record.is_null()) {
    record["status"] = to_string(status_of_exit(static_cast<int>(code)));
    record["reason"] = reason;
    if (const Json& path = partial->at("path"); !path.is_null()) {
      ResultFile file(path.get<std::string>());
      file.write(record);
      say(fmt::format("what was measured so far is in {}", file.path().string()));
    }
    records.push_back(std::move(record));
  }
  if (!config.json || records.empty()) return;
  fmt::print("{}", record_text(curves_of(config).size() == 1 ? records.front() : records));
}

}  // namespace

ScaleLaunch plan_scale(const RunConfig& config, const Resources& resources) {
  ScaleLaunch launch;
  const int per_host =
      resources.gpus_per_host > 0 ? resources.gpus_per_host : resources.cores_per_host;
  launch.ranks = config.ranks.empty()
                     ? default_ranks(static_cast<std::int64_t>(per_host) * resources.hosts)
                     : config.ranks;
  launch.largest = static_cast<int>(launch.ranks.back());
  launch.placement = place_ranks(launch.largest, resources);
  return launch;
}

ExitCode supervise_scale(const LoadedConfig& loaded, const std::vector<std::string>& arguments) {
  const RunConfig& config = loaded.config;
  const auto environment = process_environment();
  const Resources resources = find_resources(config.device, config.hostfile, environment);
  const ScaleLaunch launch = plan_scale(config, resources);
  if (!config.largest_batch) check_points(config, launch.ranks);

  LaunchRequest request;
  request.launcher =
      config.launcher == Launcher::automatic ? detect_launcher(environment) : config.launcher;
  request.hydra = built_for_hydra();
  request.ranks = launch.largest;
  request.cpus_per_rank = launch.placement.cpus_per_rank;
  request.hostfile = config.hostfile;
  request.oversubscribe = launch.placement.oversubscribe;
  request.program = {own_path().string(), "scale"};
  request.program.insert(request.program.end(), arguments.begin(), arguments.end());
  const std::string launcher = launcher_program(request);
  const bool is_root = geteuid() == 0;
  if (config.dry_run) {
    fmt::print("{}", plan_text(config, launch.ranks, /*keeps_weights=*/true));
    say("would start: " + shell_quoted(launch_command(request, is_root)));
    return ExitCode::ok;
  }
  const HandoverFolder handover;
  tell_ranks(request, resources.hosts > 1);
  const auto counted = [](int n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  say(fmt::format("{} starts {} with {} each; points: {}", launcher,
                  counted(launch.largest, "rank"), counted(launch.placement.cpus_per_rank, "core"),
                  fmt::join(launch.ranks, ", ")));
  if (launch.placement.oversubscribe)
    say("more ranks than cores: they share cores and are not bound");
  if (is_root && launcher == "mpirun") say("running as root: mpirun gets --allow-run-as-root");

  // A stop is agreed on at a step boundary, and a step may take as long as --timeout allows.
  const JobEnd end = run_job(request, handover, {.grace_seconds = config.timeout + 10});
  if (!end.reason.empty()) {
    if (!end.told) say(end.reason);
    publish_partial(config, handover, end.code, end.reason);
  }
  return end.code;
}

}  // namespace scalemark
