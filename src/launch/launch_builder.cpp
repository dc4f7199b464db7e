// See launch_builder.hpp.
#include "launch/launch_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "config/names.hpp"
#include "launch/container.hpp"
#include "launch/programs.hpp"
#include "platform/library_variables.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

using Environment = std::map<std::string, std::string>;

std::vector<std::string> program_of(const LaunchDescription& described) {
  std::vector<std::string> words{described.program.string(),
                                 std::string(name_of(described.command))};
  words.insert(words.end(), described.arguments.begin(), described.arguments.end());
  if (described.ranks_per_node && described.tells_ranks_per_node)
    words.push_back(fmt::format("--ranks_per_node={}", *described.ranks_per_node));
  if (described.output) words.push_back("--output=" + described.output->string());
  return words;
}

/// What a launcher is asked for.
void place(LaunchRequest& request, const LaunchDescription& described,
           const Environment& environment) {
  request.launcher =
      described.launcher == Launcher::automatic ? detect_launcher(environment) : described.launcher;
  request.hydra = built_for_hydra();
  request.ranks_per_node = described.ranks_per_node;
  request.hostfile = described.hostfile;
  request.hosts = described.hosts;
  for (std::string& host : request.hosts)
    if (host.empty()) host = request.launcher == Launcher::srun ? host_name() : "localhost";
  // mpirun starts its daemons by steps of Slurm, beside those of other instances.
  if (described.binds_itself && environment.contains("SLURM_JOB_ID"))
    request.environment.emplace_back("SLURM_OVERLAP", "1");
}

/// A rank that may run on more than its share of the cores computes with as many threads as one
/// that is bound to it.
void keep_threads(LaunchRequest& request, const Environment& environment) {
  if (request.binding == Binding::core) return;
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const bool is_set = environment.contains(name) ||
                        std::ranges::any_of(request.environment, [&](const auto& variable) {
                          return variable.first == name;
                        });
    if (!is_set) request.environment.emplace_back(name, std::to_string(request.cpus_per_rank));
  }
}

}  // namespace

LaunchRequest build_launch(const LaunchDescription& described, const Environment& environment) {
  LaunchRequest request;
  request.ranks = described.ranks;
  request.cpus_per_rank = described.cpus_per_rank;
  request.oversubscribe = described.oversubscribe;
  request.binding = described.binding;
  request.binds_itself = described.binds_itself;
  request.direct = described.direct;
  request.elsewhere = described.elsewhere;
  request.environment = described.environment;
  request.program = program_of(described);
  if (!request.direct) place(request, described, environment);
  if (!described.fixed_threads) keep_threads(request, environment);
  put_in_container(request, described.container,
                   {described.results, described.gpus, described.own_program});
  do_without_ssh(request, environment, described.elsewhere);
  // Where Slurm puts a step is known only where the ranks are told their host.
  request.here = !request.elsewhere && (request.launcher != Launcher::srun || request.binds_itself);
  return request;
}

void tell_ranks(LaunchRequest& request) {
  // srun counts hardware threads, mpirun cores.
  const char* what = request.launcher == Launcher::srun ? "cpus" : "core";
  const std::string binding = !request.is_bound() ? "none"
                              : request.binding == Binding::core
                                  ? fmt::format("{}:{}", what, request.cpus_per_rank)
                                  : to_string(request.binding);
  // Ranks that bind themselves know by what.
  if (!request.binds_itself) setenv("SMK_INTERNAL_BINDING", binding.c_str(), 1);
  if (request.elsewhere) request.forward = variables_for_hosts(process_environment());
}

std::vector<std::string> variables_for_hosts(const Environment& environment) {
  constexpr std::array<std::string_view, 4> kOurs{"SCALEMARK_", "SMK_INTERNAL_", "TCMALLOC_",
                                                  "THP_"};
  std::vector<std::string> names;
  for (const auto& [name, value] : environment)
    if (begins_with_one_of(name, kOurs) ||
        (is_library_variable(name) && !name.starts_with("OMPI_MCA_")))
      names.push_back(name);
  return names;
}

}  // namespace scalemark
