// Builds the command lines of mpirun (Open MPI 4 and 5), mpiexec.hydra (MPICH) and srun.
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include "config/names.hpp"
#include "config/shown_variables.hpp"
#include "launch/launch.hpp"
#include "launch/program_output.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

bool srun_has_pmix() {
  const ProgramOutput list = output_of({.command = {"srun", "--mpi=list"},
                                        .errors = ErrorStream::with_output,
                                        .deadline_seconds = 60});
  return list.is_ok() && list.text.find("pmix") != list.text.npos;
}

/// Returns true for ranks for which the launcher does not count cores.
bool may_share_cores(const LaunchRequest& request) {
  return request.oversubscribe || request.binds_itself;
}

/// Returns "n0,n1"; for mpirun each host is followed by `separator` and its number of ranks.
std::string host_list(const LaunchRequest& request, const std::string& separator = "") {
  std::string list;
  for (const auto& [host, ranks] : request.ranks_on)
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", host, ranks);
  for (const std::string& host : request.hosts)
    list +=
        (list.empty() ? "" : ",") + host +
        (separator.empty() ? "" : separator + std::to_string(request.ranks_per_node.value_or(1)));
  return list;
}

/// Builds the command of Hydra, which carries the whole environment to every host, and asks nobody
/// before it puts more ranks than cores on one.
std::vector<std::string> hydra_command(const LaunchRequest& request) {
  std::vector<std::string> words{launcher_program(request), "-n", std::to_string(request.ranks)};
  if (request.hostfile) words.insert(words.end(), {"-f", *request.hostfile});
  if (!request.hosts.empty() || !request.ranks_on.empty())
    words.insert(words.end(), {"-hosts", host_list(request)});
  if (request.ranks_per_node && request.ranks_on.empty())
    words.insert(words.end(), {"-ppn", std::to_string(*request.ranks_per_node)});
  const std::string cores = ":" + std::to_string(request.cpus_per_rank);
  words.insert(
      words.end(),
      {"-bind-to", !request.is_bound() ? "none"
                                       : to_string(request.binding) +
                                             (request.binding == Binding::core ? cores : "")});
  return words;
}

std::vector<std::string> mpirun_command(const LaunchRequest& request, bool is_root) {
  std::vector<std::string> words{request.mpirun};
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (is_root) add({"--allow-run-as-root"});
  add({"-n", std::to_string(request.ranks)});
  if (request.hostfile) add({"--hostfile", *request.hostfile});
  if (!request.hosts.empty() || !request.ranks_on.empty()) add({"--host", host_list(request, ":")});
  const bool per_node = request.ranks_per_node && request.ranks_on.empty();
  const std::string place =
      per_node ? "ppr:" + std::to_string(*request.ranks_per_node) + ":node" : "slot";
  const std::string binding = to_string(request.binding);
  if (!request.is_bound())  // it refuses to bind more ranks than cores
    add({"--map-by", place + (may_share_cores(request) ? ":OVERSUBSCRIBE" : ""), "--bind-to",
         "none"});
  else if (request.binding == Binding::core)
    add({"--map-by", place + ":PE=" + std::to_string(request.cpus_per_rank), "--bind-to", "core"});
  else  // in turns, or both ranks of two sockets would share the first
    add({"--map-by", per_node ? place : binding, "--bind-to", binding});
  for (const std::string& name : request.forward) add({"-x", name});
  for (const auto& [name, value] : request.environment)
    if (value) add({"-x", name});
  return words;
}

/// Returns srun's word for the binding. Slurm calls a NUMA node a locality domain.
std::string srun_bind(const LaunchRequest& request) {
  const std::string policy = to_string(request.binding);
  if (request.binding == Binding::numa) return "--cpu-bind=ldoms";
  return "--cpu-bind=" + policy + (request.binding == Binding::none ? "" : "s");
}

std::vector<std::string> srun_command(const LaunchRequest& request) {
  if (request.hostfile)
    throw ConfigError(
        "--hostfile belongs to mpirun; under srun the allocation names the hosts (sbatch "
        "--nodelist)");
  std::vector<std::string> words{"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n",
                                 std::to_string(request.ranks)};
  // Without -N Slurm spreads a step over all nodes of the allocation, and by block it shares tasks
  // out evenly: three on two nodes of two would be one and two.
  if (request.ranks_per_node) {
    const std::string per_node = std::to_string(*request.ranks_per_node);
    const int nodes = (request.ranks + *request.ranks_per_node - 1) / *request.ranks_per_node;
    words.insert(words.end(), {"-N", std::to_string(nodes), "--ntasks-per-node=" + per_node,
                               "--distribution=plane=" + per_node});
  }
  if (!request.hosts.empty()) words.push_back("--nodelist=" + host_list(request));
  if (request.binds_itself) words.emplace_back("--overlap");  // beside steps of other instances
  if (may_share_cores(request))
    words.insert(words.end(), {"--overcommit", "--cpu-bind=none"});
  else
    words.insert(words.end(),
                 {"--cpus-per-task=" + std::to_string(request.cpus_per_rank), srun_bind(request)});
  return words;
}

/// Returns `env -u NAME NAME=VALUE`, or nothing. A value that may not be shown is replaced by its
/// hash.
std::vector<std::string> environment_command(const LaunchRequest& request) {
  std::vector<std::string> words;
  if (!request.environment.empty()) words.emplace_back("env");
  for (const auto& [name, value] : request.environment)
    if (!value) words.insert(words.end(), {"-u", name});
  for (const auto& [name, value] : request.environment)
    if (value) words.push_back(name + "=" + shown_variable(name, *value));
  return words;
}

}  // namespace

bool built_for_hydra() { return build_info().mpi.value_or("").starts_with("MPICH"); }

std::string launcher_program(const LaunchRequest& request) {
  if (request.direct) return "scalemark";
  if (request.launcher == Launcher::srun) return "srun";
  return request.hydra ? "mpiexec.hydra" : "mpirun";
}

Launcher detect_launcher(const std::map<std::string, std::string>& environment) {
  return environment.contains("SLURM_JOB_ID") && srun_has_pmix() ? Launcher::srun
                                                                 : Launcher::mpirun;
}

std::vector<std::string> launch_command(const LaunchRequest& request, bool is_root) {
  std::vector<std::string> words;
  const auto add = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (request.launcher == Launcher::srun && !request.direct)
    add(srun_command(request));
  else if (!request.direct)
    add(request.hydra ? hydra_command(request) : mpirun_command(request, is_root));
  add(request.container);
  add(request.program);
  return words;
}

std::string shell_quoted(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::string command_line(const LaunchRequest& request) {
  std::vector<std::string> words = environment_command(request);
  const auto launch = launch_command(request, geteuid() == 0);
  words.insert(words.end(), launch.begin(), launch.end());
  return shell_quoted(words);
}

ExitCode map_launcher_exit(const SupervisedExit& exit, std::optional<int> agreed_code, bool begun) {
  for (const ExitCodeWords& known : kExitCodes)
    if (agreed_code == static_cast<int>(known.code)) return known.code;
  for (const ExitCodeWords& known : kExitCodes)
    if (!known.of_gate && known.code != ExitCode::usage &&
        exit.raw_status == static_cast<int>(known.code))
      return known.code;
  return begun || is_signal_status(exit.raw_status) ? ExitCode::failed : ExitCode::environment;
}

bool is_signal_status(int raw_status) { return raw_status > 128 && raw_status < 128 + 32; }

std::string end_words(int raw_status) {
  if (!is_signal_status(raw_status)) return fmt::format("ended with status {}", raw_status);
  const char* name = sigabbrev_np(raw_status - 128);
  return fmt::format("killed by signal {} ({})", raw_status - 128, name ? name : "unknown");
}

}  // namespace scalemark
