// One job of ranks, from its launch to what its end means.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/launch.hpp"
#include "result/records.hpp"

namespace scalemark {

/// A private folder through which the ranks tell the supervisor how they fared; gone with the
/// object. Children find it in SMK_INTERNAL_HANDOVER.
class HandoverFolder {
 public:
  HandoverFolder();
  ~HandoverFolder();
  HandoverFolder(const HandoverFolder&) = delete;
  HandoverFolder& operator=(const HandoverFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// What the ranks agreed on; their results are written.
  std::optional<int> exit_code() const;
  /// {exit_code, reason}, where rank 0 aborted the job.
  std::optional<Json> abort() const { return read("abort.json"); }
  /// {finished, record, path}: the records of the curves that are written already, that of the
  /// curve that is measured (null where it has no run yet), and where it belongs (null without
  /// --output).
  std::optional<Json> partial() const { return read("partial.json"); }

 private:
  std::optional<Json> read(const char* name) const;

  std::filesystem::path path_;
};

/// How a job ended.
struct JobEnd {
  ExitCode code = ExitCode::ok;
  std::string reason;    ///< why the code is not ok; empty where the ranks' record says it
  bool told = false;     ///< the ranks have printed the reason
  bool stopped = false;  ///< from outside: a signal reached the supervisor
};

/// Launches and watches. Throws EnvironmentError where the launcher is not in PATH.
JobEnd run_job(const LaunchRequest& request, const HandoverFolder& handover, Supervision how);

/// One of several jobs that run side by side.
struct Job {
  LaunchRequest request;
  const HandoverFolder& handover;
  std::string output;  ///< file of its stdout and stderr; empty: ours
  std::map<std::string, std::string> environment = {};  ///< of this job alone
};

struct JobEnds {
  std::vector<JobEnd> jobs;
  /// The first that failed or aborted by itself: the others were stopped for it.
  std::optional<std::size_t> first_failed;
};

/// The same of several jobs; where one fails, the others are stopped.
JobEnds run_jobs(const std::vector<Job>& jobs, Supervision how);

/// Lets the ranks know what binding the launch asks for, and carries our variables to them. Call it
/// once all variables are set.
void tell_ranks(LaunchRequest& request, bool several_hosts);

/// Names of the variables that mpirun must carry to other hosts: it takes only its own.
std::vector<std::string> variables_for_hosts(const std::map<std::string, std::string>& environment);

}  // namespace scalemark
