// See scale_job.hpp.
#include "launch/scale_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "config/curves.hpp"
#include "config/names.hpp"
#include "config/numbers.hpp"
#include "config/text.hpp"
#include "launch/dry_run.hpp"
#include "launch/engine_start.hpp"
#include "launch/launch.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

void say(const std::string& text) { std::fprintf(stderr, "scalemark: %s\n", text.c_str()); }

/// A private folder through which the ranks tell the supervisor how they fared; gone with the
/// object.
class Handover {
 public:
  Handover() {
    std::string path = (std::filesystem::temp_directory_path() / "scalemark-XXXXXX").string();
    if (!mkdtemp(path.data()))
      throw EnvironmentError(
          fmt::format("cannot make a folder {}: {}", path, std::strerror(errno)));
    path_ = path;
    setenv("SMK_INTERNAL_HANDOVER", path_.c_str(), 1);
  }
  ~Handover() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// What the ranks agreed on; their results are written.
  std::optional<int> exit_code() const {
    int code = 0;
    std::ifstream file(path_ / "exit_code");
    return file >> code ? std::optional(code) : std::nullopt;
  }
  /// {exit_code, reason}, where rank 0 aborted the job.
  std::optional<Json> abort() const { return read("abort.json"); }
  /// {finished, record, path}: the records of the curves that are written already, that of the
  /// curve that is measured (null where it has no run yet), and where it belongs (null without
  /// --output).
  std::optional<Json> partial() const { return read("partial.json"); }

 private:
  std::optional<Json> read(const char* name) const {
    std::ifstream file(path_ / name);
    if (!file) return std::nullopt;
    Json record = Json::parse(file, nullptr, false);
    return record.is_object() ? std::optional(std::move(record)) : std::nullopt;
  }

  std::filesystem::path path_;
};

Resources find_resources(const RunConfig& config,
                         const std::map<std::string, std::string>& environment) {
  Resources resources;
  resources.cores_per_host = std::max(1, std::min(physical_cores(), achieved_affinity().usable));
  if (config.device != Device::cpu)
    resources.gpus_per_host = static_cast<int>(visible_gpus().gpus.size());
  const auto nodes = environment.find("SLURM_JOB_NUM_NODES");
  if (config.hostfile)
    resources.hosts = count_hosts(*config.hostfile);
  else if (nodes != environment.end())
    resources.hosts = static_cast<int>(
        std::clamp<std::int64_t>(parse_integer(nodes->second).value_or(1), 1, 1 << 20));
  return resources;
}

/// mpirun carries only its own variables to other hosts.
std::vector<std::string> variables_for_hosts(
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> names;
  for (const auto& [name, value] : environment)
    for (const char* prefix :
         {"SCALEMARK_", "SMK_INTERNAL_", "OMP_", "MKL_", "TCMALLOC_", "NCCL_", "UCX_"})
      if (name.starts_with(prefix)) names.push_back(name);
  return names;
}

void require_program(const std::string& name) {
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return;
  throw EnvironmentError(fmt::format(
      "{} is not in PATH: install Open MPI (scripts/setup), or choose --launcher mpirun|srun",
      name));
}

std::string what_happened(const SupervisedExit& exit, const std::string& launcher) {
  if (exit.stopped_by_us)
    return fmt::format("stopped from outside ({} status {})", launcher, exit.raw_status);
  if (exit.raw_status > 128)
    return fmt::format("a rank or {0} itself was killed by signal {1} ({0} status {2})", launcher,
                       exit.raw_status - 128, exit.raw_status);
  return fmt::format("{} ended with status {}; its own message is above", launcher,
                     exit.raw_status);
}

/// The job could not write its record itself: what there was, with the reason.
void publish_partial(const RunConfig& config, const Handover& handover, ExitCode code,
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
  const int ranks_per_host = (launch.largest + resources.hosts - 1) / resources.hosts;
  launch.cpus_per_rank = std::max(1, resources.cores_per_host / ranks_per_host);
  launch.oversubscribe = ranks_per_host > resources.cores_per_host;
  return launch;
}

int count_hosts(const std::string& hostfile) {
  std::ifstream file(hostfile);
  if (!file || std::filesystem::is_directory(hostfile))
    throw ConfigError(fmt::format("--hostfile: {} can't be read; give a file with one host a line",
                                  quote(hostfile)));
  std::set<std::string> hosts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string host;
    if (words >> host && host[0] != '#') hosts.insert(host);
  }
  if (hosts.empty())
    throw ConfigError(fmt::format("--hostfile: {} names no host", quote(hostfile)));
  return static_cast<int>(hosts.size());
}

ExitCode supervise_scale(const LoadedConfig& loaded, const std::vector<std::string>& arguments) {
  const RunConfig& config = loaded.config;
  const auto environment = process_environment();
  const Resources resources = find_resources(config, environment);
  const ScaleLaunch launch = plan_scale(config, resources);
  if (!config.largest_batch) check_points(config, launch.ranks);

  LaunchRequest request;
  request.launcher =
      config.launcher == Launcher::automatic ? detect_launcher(environment) : config.launcher;
  request.ranks = launch.largest;
  request.cpus_per_rank = launch.cpus_per_rank;
  request.hostfile = config.hostfile;
  request.oversubscribe = launch.oversubscribe;
  request.program = {own_path().string(), "scale"};
  request.program.insert(request.program.end(), arguments.begin(), arguments.end());
  const std::string launcher = to_string(request.launcher);
  const bool is_root = geteuid() == 0;
  if (config.dry_run) {
    fmt::print("{}", plan_text(config, launch.ranks, /*keeps_weights=*/true));
    say("would start: " + shell_quoted(launch_command(request, is_root)));
    return ExitCode::ok;
  }
  require_program(launcher);
  const Handover handover;
  if (resources.hosts > 1) request.forward = variables_for_hosts(process_environment());
  const auto command = launch_command(request, is_root);
  const auto counted = [](int n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  say(fmt::format("{} starts {} with {} each; points: {}", launcher,
                  counted(launch.largest, "rank"), counted(launch.cpus_per_rank, "core"),
                  fmt::join(launch.ranks, ", ")));
  if (launch.oversubscribe) say("more ranks than cores: they share cores and are not bound");
  if (is_root && request.launcher == Launcher::mpirun)
    say("running as root: mpirun gets --allow-run-as-root");

  // A stop is agreed on at a step boundary, and a step may take as long as --timeout allows.
  const SupervisedExit exit =
      supervise(command, config.timeout + 10, [&] { return handover.abort().has_value(); });
  const auto agreed = handover.exit_code();
  const auto aborted = handover.abort();
  const ExitCode code = map_launcher_exit(
      exit, aborted ? std::optional(aborted->at("exit_code").get<int>()) : agreed);
  if (!agreed && code != ExitCode::ok) {
    const std::string reason =
        aborted ? aborted->at("reason").get<std::string>() : what_happened(exit, launcher);
    if (!aborted) say(reason);  // else the ranks have said it
    publish_partial(config, handover, code, reason);
  }
  return code;
}

}  // namespace scalemark
