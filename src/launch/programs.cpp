// See programs.hpp.
#include "launch/programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "error.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr const char* kPlm = "OMPI_MCA_plm";

bool is_in_path(const std::string& name) {
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

void require_program(const std::string& name, const std::string& remedy) {
  if (name.find('/') != name.npos && access(name.c_str(), X_OK) == 0) return;
  if (!is_in_path(name)) throw EnvironmentError(fmt::format("{} is not in PATH: {}", name, remedy));
}

bool any_is_set(std::initializer_list<const char*> names, const Environment& environment) {
  return std::ranges::any_of(names, [&](const char* name) { return environment.contains(name); });
}

/// Whether mpirun would look for them in vain.
bool lacks_ssh(const LaunchRequest& request, Environment environment) {
  if (request.direct || request.hydra || request.launcher != Launcher::mpirun) return false;
  for (const auto& [name, value] : request.environment) environment.emplace(name, "");
  // The user's choice; Grid Engine's and LoadLeveler's agents.
  if (any_is_set({kPlm, "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_rsh_agent",
                  "OMPI_MCA_pls_rsh_agent", "PE_HOSTFILE", "LOADL_STEP_ID"},
                 environment))
    return false;
  return !is_in_path("ssh") && !is_in_path("rsh");
}

}  // namespace

void do_without_ssh(LaunchRequest& request, const Environment& environment, bool elsewhere) {
  const bool managed = any_is_set({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}, environment);
  if ((managed || !elsewhere) && lacks_ssh(request, environment))
    request.environment.emplace_back(kPlm, "^rsh");
}

void require_programs(const LaunchRequest& request) {
  if (!request.direct)
    require_program(launcher_program(request),
                    "install the MPI that scalemark --version names, or choose --launcher "
                    "mpirun|srun");
  if (!request.container.empty() && (request.direct || request.launcher != Launcher::srun))
    require_program(request.container.front(),
                    "install it, or say with --container_runtime how the image is run");
  if (lacks_ssh(request, process_environment()))
    throw EnvironmentError(
        "mpirun reaches other hosts by ssh or rsh, and neither is in PATH: install one (Debian: "
        "openssh-client), or name another program in OMPI_MCA_plm_rsh_agent");
}

}  // namespace scalemark
