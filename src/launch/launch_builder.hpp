// The one builder of launches: of the ranks of a curve, a point of a sweep and an instance.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/keys/container.hpp"
#include "launch/launch.hpp"

namespace scalemark {

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

}  // namespace scalemark
