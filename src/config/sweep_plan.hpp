// Defines what `scalemark sweep` measures: a JSON plan of settings, every point of which is a
// launch of its own.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.hpp"
#include "config/sweep_settings.hpp"

namespace scalemark {

// The types below describe what a sweep runs around its launches: what no setting and no variable
// reaches, such as the rate of a link.

/// A program and its arguments, each one word, never through a shell.
using CommandWords = std::vector<std::string>;

struct PlanCommand {
  CommandWords words;
  bool each_host = false;  ///< once on every host of the launch; else where the launch is started
};

struct LaunchCommands {
  std::vector<PlanCommand> before, after;  ///< in the order in which they run
  bool empty() const { return before.empty() && after.empty(); }
};

/// The values of {ranks}, {repeat} and {level} in the words of a command.
struct LaunchWords {
  std::string ranks, repeat, level;
};
CommandWords filled_in(const CommandWords& command, const LaunchWords& words);

/// Says how a point is launched. Its arguments say what its ranks compute.
struct PointLaunch {
  int ranks = 1;
  std::optional<int> ranks_per_node;
  std::optional<int> cpus_per_rank;  ///< unset: an equal share of a host's cores
  std::optional<Binding> binding;    ///< unset: core
  /// The variables of the launch. A variable without a value is removed.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
};

struct SweepPoint {
  nlohmann::ordered_json settings;     ///< that make it differ from other points: {"ranks": 2, ...}
  std::vector<std::string> arguments;  ///< of `scalemark run`, one word a key
  PointLaunch launch;
  LaunchCommands commands;  ///< around each of its launches
  std::size_t group = 0;    ///< of points that differ in their level of "alternate" alone
  ResolvedConfig config;
  std::string config_hash;
  /// The SHA-256 (hex) of config_hash, launch, level and commands. Points of the same id are one
  /// point.
  std::string id;

  /// Returns a text such as "precision=bf16 ranks=2", or "the only point".
  std::string title() const;
  /// Returns the values of the words of its commands.
  LaunchWords words(std::int64_t repeat) const;
};

struct SweepPlan {
  Command command = Command::run;
  std::vector<SweepPoint> points;
  std::optional<std::size_t> standard;  ///< the point that the others are compared with
  std::int64_t repeats = 1;
  std::int64_t seed = 1;
  double launch_timeout = 1800;  ///< seconds that one launch may take
  double command_timeout = 60;   ///< seconds that a command before or after one may take
  Launcher launcher = Launcher::automatic;
  std::optional<std::string> hostfile;
  ContainerSettings container;  ///< without an image: that of the point, if it has one
  std::map<std::string, std::string> values;  ///< of {NAME} in commands, which have them by now
  std::vector<std::string> warnings;          ///< of its text, for stderr
};

/// The members of a plan, and flags of the command that launches it, that are keys of a launch.
inline constexpr std::array<const char*, 5> kLaunchKeys{"launcher", "hostfile", "container",
                                                        "container_runtime", "container_program"};
/// Copies these keys from `launch` into the plan, and the other way round.
void set_launch_keys(SweepPlan& plan, const RunConfig& launch);
RunConfig launch_keys(const SweepPlan& plan);

/// Returns {point, repeat} of every launch. Each repeat goes once through all points, in an order
/// shuffled by the seed.
std::vector<std::pair<std::size_t, std::int64_t>> launch_order(std::size_t points,
                                                               std::int64_t repeats,
                                                               std::int64_t seed);
/// Returns the same for a plan: its groups are shuffled, and the points of a group follow each
/// other in a shuffled order.
std::vector<std::pair<std::size_t, std::int64_t>> launch_order(const SweepPlan& plan);

/// Throws ConfigError where the plan has what only a sweep supports: commands around launches, or
/// levels.
void refuse_commands(const SweepPlan& plan, const std::string& name);

/// Replaces values of parsed plans by those of `words`, "NAME=TEXT" each, in every plan that has
/// the name. Throws ConfigError, which begins with `--value`, for what is no such word, and for a
/// name that none of the plans has; messages call them `what`.
void replace_values(const std::vector<nlohmann::ordered_json*>& plans,
                    const std::vector<std::string>& words, const std::string& what = "the plan");

/// Reads a plan (docs/sweep.md) and checks every point as `scalemark run` would; a point that is
/// the same as an earlier one is left out. `environment`: "NAME=value" lines; `cores`: of a host;
/// `values`: of replace_values(). Throws ConfigError with the file and the JSON pointer.
SweepPlan read_sweep_plan(const std::filesystem::path& path,
                          std::span<const std::string> environment, int cores,
                          const std::vector<std::string>& values = {});

/// Does the same for a parsed plan that messages call `name`.
SweepPlan parse_sweep_plan(const nlohmann::ordered_json& plan, const std::string& name,
                           std::span<const std::string> environment, int cores);

}  // namespace scalemark
