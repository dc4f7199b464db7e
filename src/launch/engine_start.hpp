// From this program into another one: the engine, with the variables that OpenMP and the allocator
// read at their start, and scripts/report; and the files that come with it.
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

// The files that come with the program: of an installed tree, or of the source tree that it was
// built in.

/// <prefix>/share/scalemark of an installed <prefix>/bin/scalemark.
std::filesystem::path installed_share(const std::filesystem::path& program);

/// `within` ("scripts/report", "configs") of installed_share(), or of the nearest folder above the
/// program that has it. EnvironmentError where none has.
std::filesystem::path find_shipped(const std::filesystem::path& program,
                                   const std::filesystem::path& within);

// From the front door to scripts/report, which is written in Python.

struct ReportProgram {
  std::filesystem::path python;  ///< a name without a folder is looked up in PATH
  std::filesystem::path script;
};

/// The script that belongs to `program`: of <prefix>/share/scalemark, or of the source tree that it
/// was built in. The Python: $SCALEMARK_PYTHON, that of scripts/setup beside the script or beside
/// `torch` (a wheel in its virtual environment), or python3. EnvironmentError without a script.
ReportProgram find_report_program(const std::filesystem::path& program,
                                  const std::filesystem::path& torch,
                                  const std::map<std::string, std::string>& environment);

/// Becomes the script with these words. EnvironmentError where the Python cannot be started.
[[noreturn]] void become_report(const ReportProgram& report, const std::vector<std::string>& words);

}  // namespace scalemark
