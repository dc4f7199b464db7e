// scalemark preflight --pinning --cpu_masks LIST: where ranks would run, of this process alone.
#pragma once

#include "config/run_config.hpp"
#include "error.hpp"

namespace scalemark {

/// Judges the masks on the machine that hwloc shows and prints what --pinning prints. Throws
/// ConfigError where a mask has a CPU that is not there, and among the ranks of a launcher.
ExitCode judge_cpu_masks(LoadedConfig loaded);

}  // namespace scalemark
