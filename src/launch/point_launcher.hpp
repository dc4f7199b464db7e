// Launches of a plan's points by one build: records in runs/, what they said in logs/, a line each
// in a journal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/sweep_plan.hpp"
#include "error.hpp"
#include "launch/job.hpp"
#include "launch/launch.hpp"
#include "result/journal.hpp"

namespace scalemark {

// The commands of a plan before and after a launch: what they print is kept, and what they start
// ends with them.

enum class Moment { before, after };
std::string to_string(Moment moment);

struct CommandsEnd {
  /// environment where one failed or can't be started, timeout where it took too long.
  ExitCode code = ExitCode::ok;
  std::string reason;    ///< names the first that failed, and how
  bool stopped = false;  ///< from outside: a signal reached us meanwhile
};

/// Runs them one by one on this machine, each for at most `limit_seconds`; `log` gets what they
/// print and is there only if there are any. Before a launch the first that fails is the last, and
/// a stop ends it; after one all of them run whatever happens, and only a second signal ends one.
CommandsEnd run_commands(const std::vector<CommandWords>& commands, Moment moment,
                         double limit_seconds, const std::filesystem::path& log);

/// A program `scalemark` and what it was built from.
struct Build {
  std::filesystem::path program;
  std::string revision;
  bool takes_turns = true;  ///< its runs can measure in turns with those of another
  bool own = false;         ///< this program: an image may bring it
};

/// This program.
Build own_build();

/// What a launch came to: its rate, or why it has none. `record`: null where it left none.
std::string outcome_of(const JournalEntry& entry, const Json& record);

class PointLauncher {
 public:
  /// Refers to `plan` for as long as it lives.
  PointLauncher(const SweepPlan& plan, Build build, std::filesystem::path folder);

  /// What tells the launch of a point from others; how it ended is not in it yet.
  JournalEntry entry_of(std::size_t point, std::int64_t repeat) const;
  LaunchRequest request_of(std::size_t point, std::int64_t repeat) const;
  /// As a shell reads it.
  std::string command_line(std::size_t point, std::int64_t repeat) const;
  /// The same between the commands around it.
  std::vector<std::string> command_lines(std::size_t point, std::int64_t repeat) const;

  /// Throws ResultError where the folders can't be made.
  void prepare_folders() const;
  /// Launches between the point's commands, waits for the end and appends it to the journal. A
  /// command that fails fails the launch: without those before there is none, and after one that
  /// fails its record stays, but is not counted. True where we were asked to stop.
  bool launch(Journal& journal, std::size_t point, std::int64_t repeat) const;
  /// The parts of it, where more than one launch is watched at a time.
  JournalEntry begin(std::size_t point, std::int64_t repeat) const;
  void discard_record(std::size_t point, std::int64_t repeat) const;
  Job job_of(std::size_t point, std::int64_t repeat, const HandoverFolder& handover) const;
  Supervision supervision(std::size_t point) const;
  void finish(Journal& journal, JournalEntry entry, double seconds, std::size_t point,
              const JobEnd& end) const;
  /// Null where the launch left no record. Throws ConfigError where it is gone, ResultError where
  /// it can't be read, or tells no throughput of a launch that is ok.
  Json record_of(const JournalEntry& entry) const;

  const std::filesystem::path& folder() const { return folder_; }
  const Build& build() const { return build_; }

 private:
  std::string name_of_launch(std::size_t point, std::int64_t repeat) const;
  std::filesystem::path record_path(std::size_t point, std::int64_t repeat) const;
  std::filesystem::path log_path(std::size_t point, std::int64_t repeat,
                                 const std::string& what) const;
  std::vector<CommandWords> commands_of(Moment moment, std::size_t point,
                                        std::int64_t repeat) const;
  CommandsEnd run_around(Moment moment, std::size_t point, std::int64_t repeat) const;
  JobEnd launch_prepared(JournalEntry& entry, std::size_t point, std::int64_t repeat) const;
  void conclude(JournalEntry& entry, std::size_t point, const JobEnd& end) const;
  void refuse_unwritable(std::size_t point, std::int64_t repeat, const JobEnd& end) const;
  void describe(JournalEntry& entry, const std::filesystem::path& path) const;

  const SweepPlan& plan_;
  Build build_;
  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  Launcher launcher_;
};

}  // namespace scalemark
