// See scale_job.hpp.
#include "launch/scale_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "config/curves.hpp"
#include "config/names.hpp"
#include "launch/engine_start.hpp"
#include "launch/job.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

/// The job could not write its record itself: what there was, with the reason.
void publish_partial(const ResolvedConfig& config, const HandoverFolder& handover, ExitCode code,
                     const std::string& reason) {
  auto partial = handover.partial();
  if (!partial) return;
  Json& records = partial->finished;
  if (Json& record = partial->record; !record.is_null()) {
    record["status"] = to_string(status_of_exit(static_cast<int>(code)));
    record["reason"] = reason;
    if (!partial->path.empty()) {
      ResultFile file(partial->path);
      file.write(record);
      tell(fmt::format("what was measured so far is in {}", file.path().string()));
    }
    records.push_back(std::move(record));
  }
  if (!config.json || records.empty()) return;
  fmt::print("{}", record_text(curves_of(config).size() == 1 ? records.front() : records));
}

void announce(const ScaleJob& job) {
  const std::string launcher = launcher_program(job.request);
  const auto counted = [](int n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  tell(fmt::format("{} starts {} with {} each; points: {}", launcher,
                   counted(job.request.ranks, "rank"), counted(job.request.cpus_per_rank, "core"),
                   fmt::join(job.points.ranks, ", ")));
  if (job.request.oversubscribe) tell("more ranks than cores: they share cores and are not bound");
  if (geteuid() == 0 && launcher == "mpirun")
    tell("running as root: mpirun gets --allow-run-as-root");
}

}  // namespace

ScaleLaunch plan_scale(const ResolvedConfig& config, const Resources& resources) {
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

ScaleJob scale_job(const ResolvedConfig& config, const std::vector<std::string>& arguments) {
  const auto environment = process_environment();
  const Resources resources = find_resources(config.device, config.hostfile, environment);
  ScaleJob job{plan_scale(config, resources), {}, resources.hosts > 1};
  if (!config.largest_batch) check_points(config, job.points.ranks);
  LaunchRequest& request = job.request;
  request.launcher =
      config.launcher == Launcher::automatic ? detect_launcher(environment) : config.launcher;
  request.hydra = built_for_hydra();
  request.ranks = job.points.largest;
  request.cpus_per_rank = job.points.placement.cpus_per_rank;
  request.hostfile = config.hostfile;
  request.oversubscribe = job.points.placement.oversubscribe;
  request.program = {own_path().string(), "scale"};
  request.program.insert(request.program.end(), arguments.begin(), arguments.end());
  return job;
}

ExitCode supervise_scale(const ResolvedConfig& config, ScaleJob job) {
  const HandoverFolder handover;
  tell_ranks(job.request, job.several_hosts);
  announce(job);
  // A stop is agreed on at a step boundary, and a step may take as long as --timeout allows.
  const JobEnd end = run_job(job.request, handover, {.grace_seconds = config.timeout + 10});
  if (!end.reason.empty()) {
    if (!end.told) tell(end.reason);
    publish_partial(config, handover, end.code, end.reason);
  }
  return end.code;
}

}  // namespace scalemark
