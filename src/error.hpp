// The typed errors of scalemark and the one place that maps them to exit codes.
// A message says what was wrong, where (file, JSON pointer, rank) and what would be right.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace scalemark {

/// Exit codes of every program: docs/faults.md says what each means.
enum class ExitCode : int {
  ok = 0,
  regression = 1,
  usage = 2,
  inconclusive = 3,
  failed = 4,
  timeout = 5,
  result = 6,
  environment = 7,
};

struct ExitCodeWords {
  ExitCode code;
  std::string_view words;  ///< of --help
  bool of_gate = false;    ///< a verdict: no rank and no launch leaves with it
};

/// Every code, the most severe first: with that one ranks leave that disagree.
inline constexpr ExitCodeWords kExitCodes[] = {
    {ExitCode::environment, "environment"},
    {ExitCode::usage, "usage"},
    {ExitCode::timeout, "timeout"},
    {ExitCode::failed, "run failed or invalid"},
    {ExitCode::result, "result not writable"},
    {ExitCode::regression, "regressed", true},
    {ExitCode::inconclusive, "inconclusive", true},
    {ExitCode::ok, "ok"},
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
struct ResultError : Error {
  explicit ResultError(const std::string& m) : Error(ExitCode::result, m) {}
};
struct EnvironmentError : Error {
  explicit EnvironmentError(const std::string& m) : Error(ExitCode::environment, m) {}
};

/// ConfigError "place: what". `place` is where the user wrote it: "--seed", "run.json: /seed".
[[noreturn]] void refuse_at(std::string_view place, std::string_view what);

/// The code that all ranks leave with when they disagree: the first of kExitCodes.
ExitCode most_severe(ExitCode a, ExitCode b) noexcept;

/// The exit code of any exception: Error's own; `environment` where no thread could be made;
/// std::bad_alloc and all others are `failed`.
ExitCode exit_code_of(const std::exception& error) noexcept;

/// what() without the frames of the stack that LibTorch's errors end in, and with the remedy where
/// no thread could be made.
std::string words_of(const std::exception& error);

}  // namespace scalemark
