// The points of a sweep's plan: "points", "axes" and "alternate" crossed.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/sweep_plan.hpp"
#include "config/sweep_settings.hpp"

namespace scalemark {

/// What all points of a plan have in common.
struct CommonOfPoints {
  SettingsContext context;
  std::string name;                 ///< of the plan, in messages
  nlohmann::ordered_json settings;  ///< points go before them
  LaunchCommands commands;
  std::span<const std::string> environment;  ///< "NAME=value" lines
};

/// Each once, those of a group in a row. Throws ConfigError.
std::vector<SweepPoint> make_points(const CommonOfPoints& common,
                                    const nlohmann::ordered_json& plan);

}  // namespace scalemark
