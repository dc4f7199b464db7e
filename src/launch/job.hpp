// Runs a job of ranks, from its launch to the meaning of its end.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch.hpp"
#include "result/handover.hpp"

namespace scalemark {

/// The end of a job.
struct JobEnd {
  ExitCode code = ExitCode::ok;
  std::string reason;        ///< why the code is not ok; empty where the ranks' record says it
  bool told = false;         ///< the ranks have printed the reason
  bool stopped = false;      ///< from outside: a signal reached the supervisor
  bool hung = false;         ///< nothing was heard of it: ended for that
  bool ran_out = false;      ///< it still ran when the limit of the launch was over
  bool lost_daemon = false;  ///< its launcher gave up; the ranks take that for a stop from outside
};

/// One of several jobs that run side by side.
struct Job {
  LaunchRequest request;
  const HandoverFolder& handover;
  std::string output;  ///< file of its stdout and stderr; empty: `streams`
  std::map<std::string, std::string> environment = {};  ///< of this job alone
  std::array<int, 2> streams{STDOUT_FILENO, STDERR_FILENO};
  std::function<bool()> is_silent = {};  ///< of a job without `output`: it has printed nothing
};

struct JobEnds {
  std::vector<JobEnd> jobs;
  /// The first job that failed or aborted by itself. The others were stopped for it.
  std::optional<std::size_t> first_failed;
};

/// Returns the variable that gives one of several launchers at a time a separate place for its
/// files, the existing `folder`, unless the user has set one. Open MPI 4 keeps them below one
/// folder of all its jobs: of two launchers that make it at the same moment one fails.
std::map<std::string, std::string> session_folder(const std::filesystem::path& folder);

/// Returns how jobs are watched whose ranks allow themselves `timeout` seconds for every phase.
Supervision supervision_of(double timeout);

/// Launches and watches jobs. Where one fails, the others are stopped. Throws EnvironmentError
/// where a program is missing (require_programs()), ResultError where the file size limit is too
/// small.
JobEnds run_jobs(const std::vector<Job>& jobs, Supervision how);

// The functions below deal with the output of a launch.

/// Returns the last lines of a log that are neither empty nor mpirun's standard notices, at most 3
/// and 600 characters, on one line, or an empty text where there is none.
std::string last_lines(const std::filesystem::path& log);

// mpirun adds notices on stderr whenever a rank ends with a status other than 0, between lines of
// dashes. It buries what the rank itself has said and holds nothing beyond the exit code.

/// Removes these blocks from a stream of bytes. Everything else passes at once, except for a line
/// of dashes, which waits for the line after it.
class LauncherOutputFilter {
 public:
  std::string pass(std::string_view bytes);
  /// Returns the bytes that still wait, at the end of the stream.
  std::string rest();

 private:
  std::string take_line();

  std::string waiting_;  ///< an opening line, or the begin of one
  bool inside_ = false;  ///< of a block that is left out
};

}  // namespace scalemark
