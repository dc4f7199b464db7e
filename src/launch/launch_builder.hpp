// Builds every launch: of the ranks of a curve, of a point of a sweep and of an instance. It
// decides by what the hosts offer where ranks go, and covers containers and the programs that are
// needed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/keys/container.hpp"
#include "config/run_config.hpp"
#include "launch/launch.hpp"

namespace scalemark {

// The functions below decide where ranks go, from what the hosts offer and each rank's share of it.

/// Returns the number of physical cores within this process's mask and CPU quota.
int cores_per_host();

/// A host and how many ranks it is to hold at most; unset: nobody says.
struct HostSlots {
  std::string name;
  std::optional<int> slots;
  bool operator==(const HostSlots&) const = default;
};

/// Describes what this machine, or the allocation, offers.
struct Resources {
  int cores_per_host = 1;
  int gpus_per_host = 0;   ///< visible; 0 where the run is for the CPU
  int hosts = 1;           ///< of the host file or the Slurm allocation
  bool elsewhere = false;  ///< one of them, or the only one, is another than this
  /// The hosts of the host file, or of an allocation of PBS, LSF or Grid Engine, which name theirs.
  std::vector<HostSlots> named = {};
};
Resources find_resources(Device device, const std::optional<std::string>& hostfile,
                         const std::map<std::string, std::string>& environment);

struct Placement {
  int cpus_per_rank = 1;       ///< an equal share of a host's cores
  bool oversubscribe = false;  ///< more ranks than cores on a host
};
/// Places ranks on hosts. Where `ranks_per_node` is unset, there are as few on each as the hosts
/// allow.
Placement place_ranks(int ranks, const Resources& resources,
                      std::optional<int> ranks_per_node = std::nullopt);

/// Throws ConfigError where the hosts hold fewer than `ranks` with `ranks_per_node` on each.
void refuse_too_few_hosts(int ranks, const Resources& resources, int ranks_per_node);

/// Returns the hosts in a host file of Open MPI, each once: lines that are neither empty nor
/// comments, "n0", "n0 slots=4" or "n0:4"; a host without slots has one for each of its lines where
/// it has several. Line ends of Windows and a byte order mark are passed by. Throws ConfigError
/// where there is no such file, where it names no host, and for a word that it does not know.
std::vector<HostSlots> hosts_in(const std::string& hostfile);

/// Returns the hosts that PBS (PBS_NODEFILE), LSF (LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS) or Grid
/// Engine (PE_HOSTFILE) has allocated; none outside of their jobs.
std::vector<HostSlots> allocated_hosts(const std::map<std::string, std::string>& environment);

/// Returns how many ranks each host gets, as even as their slots allow, or `ranks_per_node` on each
/// but the last; hosts without ranks are left out. Throws ConfigError where there are too few
/// slots.
std::vector<std::pair<std::string, int>> spread_ranks(int ranks,
                                                      const std::vector<HostSlots>& hosts,
                                                      std::optional<int> ranks_per_node);

/// Describes what is launched, before this machine decides how.
struct LaunchDescription {
  std::filesystem::path program;  ///< scalemark
  Command command = Command::run;
  std::vector<std::string> arguments;           ///< of the command
  std::optional<std::filesystem::path> output;  ///< of the record, the last of its arguments

  int ranks = 1;
  std::optional<int> ranks_per_node;  ///< unset: the launcher fills one node after the other
  bool tells_ranks_per_node = false;  ///< as one more argument: the command was not given it
  int cpus_per_rank = 1;
  bool oversubscribe = false;  ///< more ranks than cores
  Binding binding = Binding::core;
  bool fixed_threads = false;  ///< the arguments say with how many a rank computes

  Launcher launcher = Launcher::automatic;  ///< automatic: detect_launcher()
  std::optional<std::string> hostfile;
  std::vector<std::string> hosts;  ///< as in LaunchRequest; "": this one
  std::vector<HostSlots> named;  ///< the hosts among which the ranks are spread, if they are known
  bool elsewhere = false;        ///< some of the ranks, or all, run on other hosts
  bool binds_itself = false;     ///< as in LaunchRequest
  bool direct = false;           ///< as in LaunchRequest

  /// The variables of this launch alone. A variable without a value is removed.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  ContainerSettings container;
  std::filesystem::path results;  ///< the folder of what it writes, which a container shows
  bool gpus = false;              ///< ranks may use some
  bool own_program = true;        ///< `program` is this one, which an image brings too
};

/// Builds the launch of a description: the launcher that is available, the words of the program and
/// the variables that are needed. `environment` is that of this process. The function names the
/// container, or that there is none, in the environment of this process, for the ranks. Throws
/// ConfigError.
LaunchRequest build_launch(const LaunchDescription& described,
                           const std::map<std::string, std::string>& environment);

/// Tells the ranks which binding the launch asks for, and carries scalemark's variables to them.
/// Call it once all variables are set.
void tell_ranks(LaunchRequest& request);

/// Returns the names of the variables that mpirun must carry to other hosts: those of scalemark and
/// of libraries, except for its own, which it carries by itself.
std::vector<std::string> variables_for_hosts(const std::map<std::string, std::string>& environment);

// The functions below put ranks into containers: they add words to the launcher's command line, and
// tell ranks in which image they run.

/// Says what a launch in a container must see of the host.
struct ContainerView {
  std::filesystem::path results;  ///< the folder of what it writes
  bool gpus = false;              ///< the devices and libraries of the driver
  bool own_program = true;        ///< the image brings the program; else it is the host's
};

/// Puts the ranks of `request`, whose launcher and program are set, into the container of
/// `settings`, if there is one, and names it to them (platform/container.hpp). Every rank enters
/// one of its own; the launcher stays outside. Throws ConfigError: pyxis without srun, folders that
/// a runtime could not be told of.
void put_in_container(LaunchRequest& request, const ContainerSettings& settings,
                      const ContainerView& view);

/// Throws ConfigError where an image is requested and this process would become a rank outside of
/// it.
void refuse_outside_container(const ContainerSettings& settings, bool is_launched);

// The functions below deal with the programs that a launch needs: the launcher itself, and those by
// which it reaches other hosts.

/// Makes mpirun work where Open MPI 4 ends by an error of its own: in a host name with an
/// underscore, and for a user without account or HOME, as containers have them. What the user has
/// set stands.
void do_without_account(LaunchRequest& request,
                        const std::map<std::string, std::string>& environment);

/// Makes mpirun work without ssh. Without ssh and rsh in PATH Open MPI 4's mpirun ends, even where
/// it has no other host to reach. There, and where a resource manager reaches the hosts, its
/// component that needs one of them is left out: on one host `isolated` remains of its framework
/// plm. What the user has set of it stands. `elsewhere`: ranks are to run on other hosts too.
void do_without_ssh(LaunchRequest& request, const std::map<std::string, std::string>& environment,
                    bool elsewhere);

/// Checks the programs of a complete request. Throws EnvironmentError where one is not in PATH.
/// Nothing is known here of what srun starts on other hosts.
void require_programs(const LaunchRequest& request);

}  // namespace scalemark
