// From the front door to scripts/report, which is written in Python.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace scalemark {

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
