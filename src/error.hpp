// The typed errors of scalemark and the one place that maps them to exit codes.
// A message says what was wrong, where (file, JSON pointer, rank) and what would be right.
#pragma once

#include <stdexcept>
#include <string>

namespace scalemark {

/// Exit codes of every program (design: "Exit codes").
enum class ExitCode : int {
  ok = 0,
  regression = 1,    ///< gate only
  usage = 2,         ///< usage or configuration, also an input path that does not exist
  inconclusive = 3,  ///< gate only
  failed = 4,        ///< run failed or invalid: non-finite loss, data check, lost rank
  timeout = 5,       ///< timeout or hang
  result = 6,        ///< unreadable, corrupt or foreign file, or a result that cannot be written
  environment = 7,   ///< no GPU, versions, launcher
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

struct ConfigError : Error {
  explicit ConfigError(const std::string& m) : Error(ExitCode::usage, m) {}
};
struct RunError : Error {
  explicit RunError(const std::string& m) : Error(ExitCode::failed, m) {}
};
struct CommError : Error {
  explicit CommError(const std::string& m) : Error(ExitCode::failed, m) {}
};
struct TimeoutError : Error {
  explicit TimeoutError(const std::string& m) : Error(ExitCode::timeout, m) {}
};
struct ResultError : Error {
  explicit ResultError(const std::string& m) : Error(ExitCode::result, m) {}
};
struct EnvironmentError : Error {
  explicit EnvironmentError(const std::string& m) : Error(ExitCode::environment, m) {}
};

/// The code that all ranks leave with when they disagree: precedence 7, 2, 5, 4, 6, then the
/// others.
ExitCode most_severe(ExitCode a, ExitCode b) noexcept;

/// The exit code of any exception: Error's own; std::bad_alloc and all others are `failed`.
ExitCode exit_code_of(const std::exception& error) noexcept;

}  // namespace scalemark
