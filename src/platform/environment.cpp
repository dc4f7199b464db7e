// Reads environment variables: what a launcher announces, and the allow-list of what a record may
// show.
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "config/shown_variables.hpp"
#include "platform/platform.hpp"

extern char** environ;

namespace scalemark {
namespace {
using Environment = std::map<std::string, std::string>;

std::optional<std::int64_t> count_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Returns the tasks of the Slurm step that this process belongs to. A batch script and a shell in
/// an allocation are not tasks of a launch although SLURM_NTASKS is set there: they have no step,
/// or one of the special step numbers.
std::optional<std::int64_t> slurm_step_tasks(const Environment& environment) {
  constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;  // batch, extern, interactive, pending
  auto step = count_of(environment, "SLURM_STEP_ID");
  if (!step) step = count_of(environment, "SLURM_STEPID");
  if (!step || *step >= kFirstSpecialStep || !count_of(environment, "SLURM_PROCID"))
    return std::nullopt;
  auto tasks = count_of(environment, "SLURM_STEP_NUM_TASKS");
  if (!tasks) tasks = count_of(environment, "SLURM_NTASKS");
  if (!tasks) tasks = count_of(environment, "SLURM_NPROCS");
  return tasks;
}

constexpr std::array<std::string_view, 16> kNames{
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",    "SLURM_JOB_ID",         "SLURM_STEP_ID",
    "SLURM_JOB_NUM_NODES",  "SLURM_NNODES",         "SLURM_NTASKS",         "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_CPUS_PER_TASK",
    "SLURM_CPUS_ON_NODE",   "SLURM_CPU_BIND_TYPE",  "SLURM_DISTRIBUTION",   "SLURM_MPI_TYPE"};

/// mpirun sets these variables for the processes of a single launch: addresses, process numbers,
/// folders. They are not settings of a user, and they differ between any two launches. PREFIXES,
/// cpu_type and num_procs are of Open MPI 5.
constexpr std::array<std::string_view, 18> kOfOneLaunch{"OMPI_MCA_PREFIXES",
                                                        "OMPI_MCA_cpu_type",
                                                        "OMPI_MCA_ess",
                                                        "OMPI_MCA_initial_wdir",
                                                        "OMPI_MCA_num_procs",
                                                        "OMPI_MCA_orte_app_num",
                                                        "OMPI_MCA_orte_bound_at_launch",
                                                        "OMPI_MCA_orte_ess",
                                                        "OMPI_MCA_orte_hnp_uri",
                                                        "OMPI_MCA_orte_jobfam_session_dir",
                                                        "OMPI_MCA_orte_launch",
                                                        "OMPI_MCA_orte_local_daemon_uri",
                                                        "OMPI_MCA_orte_node_regex",
                                                        "OMPI_MCA_orte_num_nodes",
                                                        "OMPI_MCA_orte_parent_uri",
                                                        "OMPI_MCA_parent_uri",
                                                        "OMPI_MCA_orte_tmpdir_base",
                                                        "OMPI_MCA_orte_top_session_dir"};

/// What users set. What scalemark sets in every launch, where they have not, tells nothing.
bool allowed(std::string_view name, std::string_view value) {
  if (std::ranges::find(kAllocatorDefaults, std::pair(name, value)) != kAllocatorDefaults.end())
    return false;
  // This variable is set by a user or by comm/mca.cpp, and not by mpirun.
  if (name == "OMPI_MCA_ess_singleton_isolated") return true;
  if (begins_with_one_of(name, kOfOneLaunch)) return false;
  return std::ranges::find(kNames, name) != kNames.end() || is_library_variable(name);
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

std::optional<LauncherHint> launcher_hint(const Environment& environment) {
  // The innermost launcher is looked for first, since mpirun is often called from a batch script or
  // even from a Slurm step.
  if (const auto tasks = count_of(environment, "OMPI_COMM_WORLD_SIZE"))
    return LauncherHint{"mpirun", *tasks};
  const auto step_tasks = slurm_step_tasks(environment);
  if (const auto tasks = count_of(environment, "PMI_SIZE")) {
    // With srun --mpi=pmi2, PMI_SIZE is set too and both numbers agree. Hydra below Slurm has one
    // Slurm task for each node.
    return LauncherHint{step_tasks == tasks ? "srun" : "hydra", *tasks};
  }
  if (step_tasks) return LauncherHint{"srun", *step_tasks};
  return std::nullopt;
}

bool is_srun_without_pmi(const Environment& environment) {
  const auto hint = launcher_hint(environment);
  return hint && hint->name == "srun" && !environment.contains("PMIX_NAMESPACE") &&
         !environment.contains("PMI_RANK");
}

std::vector<std::string> variables_of_lone_task(const Environment& environment) {
  if (environment.contains("OMPI_COMM_WORLD_SIZE") || slurm_step_tasks(environment) != 1) return {};
  const bool is_terminal = environment.contains("SLURM_PTY_PORT");
  std::vector<std::string> names{"SLURM_STEP_ID", "SLURM_STEPID"};
  for (const auto& [name, value] : environment)
    if (name.starts_with("PMIX_") || name.starts_with("PMI_")) {
      if (!is_terminal) return {};  // a launch of one rank
      names.push_back(name);
    }
  return names;
}

Environment recorded_environment(const Environment& environment) {
  Environment recorded;
  for (const auto& [name, value] : environment)
    if (allowed(name, value) && !names_a_secret(name))
      recorded.emplace(name, shown_variable(name, value));
  return recorded;
}

Environment without_variables_of_job(Environment recorded) {
  const bool job = recorded.contains("SLURM_JOB_ID");
  std::erase_if(recorded, [&](const auto& variable) {
    return variable.first.starts_with("SLURM_") ||
           (job && variable.first == "CUDA_VISIBLE_DEVICES");
  });
  return recorded;
}

}  // namespace scalemark
