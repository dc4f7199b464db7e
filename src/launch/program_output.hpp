// Runs a program from an argument list, without a shell in between, and returns what it prints.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace scalemark {

/// Says where a program's stderr goes.
enum class ErrorStream { ours, dropped, with_output };

struct ProgramRequest {
  std::vector<std::string> command;  ///< found in PATH where it names no folder
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< beside ours
  ErrorStream errors = ErrorStream::ours;
  /// The seconds after which the program and all that it has started are killed. Where it is unset,
  /// the program may take as long as it likes, and belongs to the process group of this process, so
  /// that a terminal's Ctrl-C reaches it.
  std::optional<double> deadline_seconds = {};
};

struct ProgramOutput {
  bool is_ok() const { return status == 0 && !overdue; }

  std::string text;      ///< its stdout
  int status = 0;        ///< 128+n for a signal, 127 where it can't be started
  bool overdue = false;  ///< it was killed at the deadline
};

/// Runs the program to its end; its stdin is empty. Throws EnvironmentError where this process can
/// start none.
ProgramOutput output_of(const ProgramRequest& request);

/// Returns the first executable of this name in the folders of `path`, as PATH lists them, or an
/// empty path.
std::filesystem::path found_in_path(const std::string& name, const std::string& path);

}  // namespace scalemark
