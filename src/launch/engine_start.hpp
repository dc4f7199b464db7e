// Replaces this program by another one (the engine, with the variables that OpenMP and the
// allocator read at their start, or scripts/report), and finds the files that come with it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// Returns the variables to set before the engine starts. `usable_cpus` is the number of threads
/// worth starting. What the user has set stays, except that --num_intra_threads beats
/// OMP_NUM_THREADS.
std::vector<std::pair<std::string, std::string>> engine_variables(
    const ResolvedConfig& config, int usable_cpus,
    const std::map<std::string, std::string>& environment);

/// Returns the path of this program, with links resolved.
std::filesystem::path own_path();

/// Sets the variables and becomes the engine, which gets the loaded configuration. The process id
/// and the arguments stay. Throws EnvironmentError where the engine isn't there.
[[noreturn]] void become_engine(const LoadedConfig& loaded, char** argv);

// The functions below find the files that come with the program, in an installed tree or in the
// source tree that it was built in.

/// Returns the nearest folder above `file` that has `within`, or an empty path. Another user can
/// not put one in its way: the search ends at a folder that all may write to, and everything
/// belongs to the owner of its folder, to this user or to root.
std::filesystem::path folder_above(const std::filesystem::path& file,
                                   const std::filesystem::path& within);

/// Returns <prefix>/share/scalemark for an installed <prefix>/bin/scalemark.
std::filesystem::path installed_share(const std::filesystem::path& program);

/// Returns the file or folder `within` ("scripts/report", "configs") of installed_share(), or of
/// folder_above() the program. Throws EnvironmentError where none has it.
std::filesystem::path find_shipped(const std::filesystem::path& program,
                                   const std::filesystem::path& within);

// The functions below lead from the front door to scripts/report, which is written in Python.

struct ReportProgram {
  std::filesystem::path python;  ///< a name without a folder is looked up in PATH
  std::filesystem::path script;
};

/// Finds the script that belongs to `program`, in <prefix>/share/scalemark or in the source tree
/// that it was built in, and the Python that runs it: $SCALEMARK_PYTHON, that of the environment
/// into which pip put `program`, that of scripts/setup beside the script or beside `torch` (a wheel
/// in its virtual environment), or python3.
/// EnvironmentError without a script.
ReportProgram find_report_program(const std::filesystem::path& program,
                                  const std::filesystem::path& torch,
                                  const std::map<std::string, std::string>& environment);

/// Becomes the script with these arguments. Throws EnvironmentError where the Python cannot be
/// started.
[[noreturn]] void become_report(const ReportProgram& report, const std::vector<std::string>& words);

}  // namespace scalemark
