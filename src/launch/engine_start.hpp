// From the front door into the engine: the variables that OpenMP and the allocator read at their
// start, then execve.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// Variables to set before the engine starts. `usable_cpus`: threads worth starting. What the user
/// has set stays, except that --num_intra_threads beats OMP_NUM_THREADS.
std::vector<std::pair<std::string, std::string>> engine_variables(
    const ResolvedConfig& config, int usable_cpus,
    const std::map<std::string, std::string>& environment);

/// This program, with links resolved.
std::filesystem::path own_path();

/// Sets the variables and becomes the engine, which gets what is loaded: same process id, same
/// arguments. Throws EnvironmentError where the engine isn't there.
[[noreturn]] void become_engine(const LoadedConfig& loaded, char** argv);

}  // namespace scalemark
