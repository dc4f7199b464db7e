// The one builder of launches: of the ranks of a curve, a point of a sweep and an instance. What
// the hosts offer, where ranks go, containers, and the programs that are needed.
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

// Where ranks go: what the hosts offer, and each rank's share of it.

/// Physical cores within this process's mask and CPU quota.
int cores_per_host();

/// What this machine, or the allocation, offers.
struct Resources {
  int cores_per_host = 1;
  int gpus_per_host = 0;   ///< visible; 0 where the run is for the CPU
  int hosts = 1;           ///< of the host file or the Slurm allocation
  bool elsewhere = false;  ///< one of them, or the only one, is another than this
};
Resources find_resources(Device device, const std::optional<std::string>& hostfile,
                         const std::map<std::string, std::string>& environment);

struct Placement {
  int cpus_per_rank = 1;       ///< an equal share of a host's cores
  bool oversubscribe = false;  ///< more ranks than cores on a host
};
/// `ranks_per_node`: unset: as few as the hosts allow.
Placement place_ranks(int ranks, const Resources& resources,
                      std::optional<int> ranks_per_node = std::nullopt);

/// ConfigError where the hosts, with so many ranks on each, hold fewer than `ranks`.
void refuse_too_few_hosts(int ranks, const Resources& resources, int ranks_per_node);

/// Hosts in an Open MPI host file: lines that are neither empty nor comments, each name once.
/// ConfigError where it does not exist or names none.
std::set<std::string> hosts_in(const std::string& hostfile);

/// What is to be launched, before this machine is asked how.
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
  bool elsewhere = false;          ///< some of the ranks, or all, run on other hosts
  bool binds_itself = false;       ///< as in LaunchRequest
  bool direct = false;             ///< as in LaunchRequest

  /// Of this launch alone; without a value the variable is taken away.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  ContainerSettings container;
  std::filesystem::path results;  ///< the folder of what it writes, which a container shows
  bool gpus = false;              ///< ranks may use some
  bool own_program = true;        ///< `program` is this one, which an image brings too
};

/// The launch of a description: the launcher that is there, the program's words, the variables that
/// all of this needs. `environment`: this process's. Names the container, or that there is none, in
/// our own environment, for the ranks. Throws ConfigError.
LaunchRequest build_launch(const LaunchDescription& described,
                           const std::map<std::string, std::string>& environment);

/// Lets the ranks know what binding the launch asks for, and carries our variables to them. Call it
/// once all variables are set.
void tell_ranks(LaunchRequest& request);

/// Names of the variables that mpirun must carry to other hosts: ours, and those of libraries but
/// for its own, which it takes by itself.
std::vector<std::string> variables_for_hosts(const std::map<std::string, std::string>& environment);

// Ranks in containers: the words that the launcher's command line gets, and what ranks are told of
// the image they run in.

/// What a launch in a container must see of the host, and with what.
struct ContainerView {
  std::filesystem::path results;  ///< the folder of what it writes
  bool gpus = false;              ///< the devices and libraries of the driver
  bool own_program = true;        ///< the image brings the program; else it is the host's
};

/// Puts the ranks of `request`, whose launcher and program stand, into the container of `settings`,
/// if there is one, and names it to them (platform/container.hpp). Every rank enters one of its
/// own; the launcher stays outside. Throws ConfigError: pyxis without srun, folders that a runtime
/// could not be told of.
void put_in_container(LaunchRequest& request, const ContainerSettings& settings,
                      const ContainerView& view);

/// ConfigError where an image is asked for and this process is to become a rank outside of it.
void refuse_outside_container(const ContainerSettings& settings, bool is_launched);

// The programs that a launch needs: the launcher itself, and what it would reach other hosts by.

/// Without ssh and rsh in PATH Open MPI 4's mpirun ends, also where it has no other host to reach.
/// There, and where a resource manager reaches them, its component that wants one is left out: on
/// one host `isolated` remains of its framework plm. What the user has set of it stands.
/// `elsewhere`: ranks are to run on other hosts too.
void do_without_ssh(LaunchRequest& request, const std::map<std::string, std::string>& environment,
                    bool elsewhere);

/// Of a request that is complete. Throws EnvironmentError where one is not in PATH. Of what srun
/// starts on other hosts nothing is known here.
void require_programs(const LaunchRequest& request);

}  // namespace scalemark
