// Flags of the launch that beat those of a plan.
#pragma once

#include "config/flags.hpp"
#include "config/sweep_plan.hpp"

namespace scalemark {

/// --launcher and --hostfile, where they were given. Throws ConfigError.
void apply_launch_flags(SweepPlan& plan, const FlagReader& flags);

}  // namespace scalemark
