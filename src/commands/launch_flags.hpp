// Flags of the launch that beat those of a plan.
#pragma once

#include "config/command_help.hpp"
#include "config/flags.hpp"
#include "config/sweep_plan.hpp"

namespace scalemark {

/// --launcher, --hostfile and those of containers, where they were given. Throws ConfigError.
void apply_launch_flags(SweepPlan& plan, const FlagReader& flags);

/// Their help; `standard` says what holds without them.
FlagHelp launcher_flag(const std::string& standard);
FlagHelp hostfile_flag(const std::string& standard);
/// As keys of containers, which the plan may have too.
FlagGroup container_flags();

}  // namespace scalemark
