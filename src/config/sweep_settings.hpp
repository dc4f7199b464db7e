// Defines the settings of a sweep's plan: keys of the command, how a point is launched, and
// variables.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// The prefix of variables: "env.NCCL_ALGO" is the variable NCCL_ALGO of a launch.
inline constexpr std::string_view kVariablePrefix = "env.";
/// The setting of a point that names its level of "alternate".
inline constexpr const char* kLevelSetting = "alternate";

/// Says to what the launcher binds a rank: as many cores as it has, its whole socket or NUMA node,
/// or nothing.
enum class Binding { core, socket, numa, none };
constexpr auto names_of(Binding) { return Names{"core", "socket", "numa", "none"}; }

struct SettingsContext {
  Command command = Command::run;
  int cores = 1;  ///< of a host: what "cores", "cores-1", "cores/4-1" and "cores*8" stand for
  std::vector<std::string>* warnings = nullptr;  ///< receives what to write for former names, once
};

/// Returns a checked pair of a plan: canonical name and value. Throws ConfigError, which begins
/// with `place`.
std::pair<std::string, nlohmann::ordered_json> check_setting(const SettingsContext& context,
                                                             const std::string& written,
                                                             const nlohmann::ordered_json& value,
                                                             const std::string& place);

/// Returns true for ranks, ranks_per_node, cpus_per_rank and binding, which are settings of a
/// launch, not keys of the command.
bool is_launch_setting(std::string_view name);

/// Returns an object of a plan with canonical names and checked values, whole numbers in place of
/// expressions of "cores". `place` begins every message. Throws ConfigError.
nlohmann::ordered_json check_settings(const SettingsContext& context,
                                      const nlohmann::ordered_json& object,
                                      const std::string& place);

/// Returns the settings that make a point differ, such as "precision=bf16 ranks=2", or "the only
/// point".
std::string settings_title(const nlohmann::ordered_json& settings);

/// Returns a whole number. Throws ConfigError where it is not one from `low` to `high`.
std::int64_t whole_number(const nlohmann::ordered_json& value, std::int64_t low, std::int64_t high,
                          const std::string& place);

}  // namespace scalemark
