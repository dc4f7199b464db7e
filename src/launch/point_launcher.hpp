// Launches the points of a plan by one build. Records are in runs/, output is in logs/, and each
// launch has a line in a journal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/sweep_plan.hpp"
#include "error.hpp"
#include "launch/job.hpp"
#include "launch/launch.hpp"
#include "launch/launch_builder.hpp"
#include "result/journal.hpp"

namespace scalemark {

// The functions below run the commands of a plan before and after a launch. Their output is kept.
// What one that succeeds leaves running goes on; of one that fails nothing is left.

enum class Moment { before, after };
std::string to_string(Moment moment);

struct CommandsEnd {
  /// The code is `environment` where one failed or cannot be started, and `timeout` where it took
  /// too long.
  ExitCode code = ExitCode::ok;
  std::string reason;    ///< names the first that failed, and how
  bool stopped = false;  ///< from outside: a signal reached us meanwhile
};

/// A command around a launch.
struct AroundCommand {
  CommandWords words;
  /// The launch of `words` on each of its hosts (on_each_host()); unset: they run on this machine.
  std::optional<LaunchRequest> on_hosts = {};
};

/// Returns `launch` with a command in place of its program, which the first rank on each host runs:
/// so it reaches the hosts by the same means, and no others. A line of its output says how it ended
/// on a host, and the ranks themselves end with 0, since a launcher that sees one fail kills those
/// of other hosts.
LaunchRequest on_each_host(LaunchRequest launch, const CommandWords& command, Moment moment);

/// Runs commands one by one, each for at most `limit_seconds`. Their output goes to
/// `log`, which exists only if there are any. Before a launch, the first that fails is the last,
/// and a stop ends it; after a launch all of them run whatever happens, and only a second signal
/// ends one.
CommandsEnd run_commands(const std::vector<AroundCommand>& commands, Moment moment,
                         double limit_seconds, const std::filesystem::path& log);

/// A program `scalemark` and what it was built from.
struct Build {
  std::filesystem::path program;
  std::string revision;
  bool interleaved = true;  ///< its runs can be interleaved with those of another
  bool own = false;         ///< this program: an image may bring it
  std::string type = {};    ///< of CMake: Release, Debug; empty: not told
};

/// Returns the build of this program.
Build own_build();

/// Returns the outcome of a launch: its rate, or why it has none. `record` is null where the launch
/// left none.
std::string outcome_of(const JournalEntry& entry, const Json& record);

class PointLauncher {
 public:
  /// Refers to `plan` during its lifetime.
  PointLauncher(const SweepPlan& plan, Build build, std::filesystem::path folder);

  /// Returns the entry that identifies the launch of a point. It does not contain its end yet.
  JournalEntry entry_of(std::size_t point, std::int64_t repeat) const;
  LaunchRequest request_of(std::size_t point, std::int64_t repeat) const;
  /// Returns the command of a launch as a shell reads it.
  std::string command_line(std::size_t point, std::int64_t repeat) const;
  /// Returns the command of a launch between the commands around it.
  std::vector<std::string> command_lines(std::size_t point, std::int64_t repeat) const;

  /// Has the journal say that a launch which is done does not count, and why.
  static void revoke(Journal& journal, JournalEntry launch, const std::string& reason);
  /// Throws ConfigError where launches that count were started under other variables than this one
  /// would be, or with other values of the plan: its figures could not be told apart from theirs.
  void refuse_other_variables(const Journal& journal) const;
  /// Makes the folders. Throws ResultError where that fails.
  void prepare_folders() const;
  /// Runs a launch between the point's commands, waits for its end and appends it to the journal. A
  /// command that fails makes the launch fail: where one before it fails there is no launch, and
  /// where one after it fails the record stays, but is not counted. Returns true where a stop was
  /// requested.
  bool launch(Journal& journal, std::size_t point, std::int64_t repeat) const;
  /// These are the parts of launch(), for callers that watch more than one launch at a time.
  /// What an earlier attempt has left is void from here on: the journal says so before its record
  /// goes.
  JournalEntry begin(Journal& journal, std::size_t point, std::int64_t repeat) const;
  void discard_record(std::size_t point, std::int64_t repeat) const;
  Job job_of(std::size_t point, std::int64_t repeat, const HandoverFolder& handover) const;
  Supervision supervision(std::size_t point) const;
  void finish(Journal& journal, JournalEntry entry, double seconds, std::size_t point,
              const JobEnd& end) const;
  /// Returns the record of a launch, or null where it left none. Throws ConfigError where the
  /// record is gone, and ResultError where it cannot be read, or has no throughput although the
  /// launch is ok.
  Json record_of(const JournalEntry& entry) const;

  const std::filesystem::path& folder() const { return folder_; }
  const Build& build() const { return build_; }

 private:
  std::string name_of_launch(std::size_t point, std::int64_t repeat) const;
  std::filesystem::path record_path(std::size_t point, std::int64_t repeat) const;
  std::filesystem::path log_path(std::size_t point, std::int64_t repeat,
                                 const std::string& what) const;
  LaunchDescription description_of(std::size_t point, std::int64_t repeat) const;
  std::vector<AroundCommand> commands_of(Moment moment, std::size_t point,
                                         std::int64_t repeat) const;
  CommandsEnd run_around(const std::vector<AroundCommand>& commands, Moment moment,
                         std::size_t point, std::int64_t repeat) const;
  JobEnd launch_prepared(JournalEntry& entry, const std::vector<AroundCommand>& before,
                         std::size_t point, std::int64_t repeat) const;
  void conclude(JournalEntry& entry, std::size_t point, const JobEnd& end) const;
  void refuse_unwritable(std::size_t point, std::int64_t repeat, const JobEnd& end) const;
  void describe(JournalEntry& entry, const std::filesystem::path& path) const;

  const SweepPlan& plan_;
  Build build_;
  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  std::map<std::string, std::string> shown_;  ///< of it, what the journal tells
  Launcher launcher_;
};

}  // namespace scalemark
