// See job.hpp.
#include "launch/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "config/names.hpp"
#include "error.hpp"
#include "platform/library_variables.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

void require_program(const std::string& name) {
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return;
  throw EnvironmentError(
      fmt::format("{} is not in PATH: install the MPI that scalemark --version names, or choose "
                  "--launcher mpirun|srun",
                  name));
}

std::string what_happened(const SupervisedExit& exit, const Job& job, const Supervision& how) {
  const std::string launcher = launcher_program(job.request);
  if (exit.overdue)
    return fmt::format("stopped after {:g} s, the limit of a launch", *how.limit_seconds);
  if (exit.stopped_by_us)
    return fmt::format("stopped from outside ({} status {})", launcher, exit.raw_status);
  if (exit.raw_status > 128)
    return fmt::format("a rank or {0} itself was killed by signal {1} ({0} status {2})", launcher,
                       exit.raw_status - 128, exit.raw_status);
  return fmt::format("{} ended with status {}; its own message is {}", launcher, exit.raw_status,
                     job.output.empty() ? "above" : "in " + job.output);
}

JobEnd end_of(const Job& job, const SupervisedExit& exit, const Supervision& how) {
  const auto agreed = job.handover.exit_code();
  const auto aborted = job.handover.abort();
  JobEnd end;
  end.stopped = exit.stopped_by_us && !aborted;
  if (exit.overdue && !agreed && !aborted)
    end.code = ExitCode::timeout;
  else
    end.code = map_launcher_exit(exit, aborted ? std::optional(aborted->exit_code) : agreed);
  end.told = aborted.has_value();
  if (!agreed && end.code != ExitCode::ok)
    end.reason = aborted ? aborted->reason : what_happened(exit, job, how);
  return end;
}

}  // namespace

JobEnd run_job(const LaunchRequest& request, const HandoverFolder& handover, Supervision how) {
  return run_jobs({{request, handover, how.output}}, how).jobs.front();
}

JobEnds run_jobs(const std::vector<Job>& jobs, Supervision how) {
  std::vector<ChildProcess> processes;
  for (const Job& job : jobs) {
    require_program(launcher_program(job.request));
    processes.push_back({launch_command(job.request, geteuid() == 0), job.output, [&job] {
                           setenv(kHandoverVariable, job.handover.path().c_str(), 1);
                           for (const auto& [name, value] : job.environment)
                             setenv(name.c_str(), value.c_str(), 1);
                         }});
  }
  how.has_ended = [&] {
    return std::ranges::any_of(jobs,
                               [](const Job& job) { return job.handover.abort().has_value(); });
  };
  const SupervisedExits exits = supervise_all(processes, how);
  JobEnds ends;
  ends.first_failed = exits.first_failed;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    ends.jobs.push_back(
        end_of(jobs[i], {exits.raw_status[i], exits.stopped_by_us, exits.overdue}, how));
  const auto aborted = std::ranges::find_if(ends.jobs, &JobEnd::told);
  if (aborted != ends.jobs.end())
    ends.first_failed = static_cast<std::size_t>(aborted - ends.jobs.begin());
  return ends;
}

void tell_ranks(LaunchRequest& request, bool several_hosts) {
  // srun counts hardware threads, mpirun cores.
  const char* what = request.launcher == Launcher::srun ? "cpus" : "core";
  const std::string binding =
      request.oversubscribe ? "none" : fmt::format("{}:{}", what, request.cpus_per_rank);
  setenv("SMK_INTERNAL_BINDING", binding.c_str(), 1);
  if (several_hosts) request.forward = variables_for_hosts(process_environment());
}

std::vector<std::string> variables_for_hosts(
    const std::map<std::string, std::string>& environment) {
  constexpr std::array<std::string_view, 3> kOurs{"SCALEMARK_", "SMK_INTERNAL_", "TCMALLOC_"};
  std::vector<std::string> names;
  for (const auto& [name, value] : environment)
    if (begins_with_one_of(name, kOurs) ||
        (is_library_variable(name) && !name.starts_with("OMPI_MCA_")))
      names.push_back(name);
  return names;
}

}  // namespace scalemark
