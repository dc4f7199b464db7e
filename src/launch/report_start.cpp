// See report_start.hpp.
#include "launch/report_start.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "error.hpp"
#include "launch/companions.hpp"

namespace scalemark {
ReportProgram find_report_program(const std::filesystem::path& program,
                                  const std::filesystem::path& torch,
                                  const std::map<std::string, std::string>& environment) {
  namespace fs = std::filesystem;
  const fs::path script = find_companion(program, fs::path("scripts") / "report");
  if (const auto chosen = environment.find("SCALEMARK_PYTHON");
      chosen != environment.end() && !chosen->second.empty())
    return {chosen->second, script};
  std::error_code error;
  const fs::path own = script.parent_path().parent_path() / ".venv" / "bin" / "python";
  if (fs::exists(own, error)) return {own, script};
  for (fs::path up = torch.parent_path(); up != up.parent_path(); up = up.parent_path())
    if (fs::exists(up / "pyvenv.cfg", error)) return {up / "bin" / "python", script};
  return {"python3", script};
}

void become_report(const ReportProgram& report, const std::vector<std::string>& words) {
  std::vector<std::string> all{report.python.string(), report.script.string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  throw EnvironmentError(fmt::format(
      "scalemark report: cannot start {}: {}; set SCALEMARK_PYTHON to a Python 3.10 or newer with "
      "matplotlib and Jinja2, or run scripts/setup",
      report.python.string(), std::strerror(errno)));
}

}  // namespace scalemark
