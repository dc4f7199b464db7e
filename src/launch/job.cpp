// Launches and watches jobs, and interprets how they end.
#include "launch/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "error.hpp"
#include "launch/launch_builder.hpp"
#include "launch/program_output.hpp"
#include "measure/clock.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// With fewer, mpirun hangs.
constexpr std::uint64_t kDescriptors = 48;

/// Where the first mpirun in PATH belongs to another MPI than the ranks, says so: it knows other
/// words, or starts ranks that do not find each other.
std::string other_launcher(const LaunchRequest& request) {
  if (launcher_program(request) != "mpirun") return "";
  const ProgramOutput said = output_of({.command = {request.mpirun, "--version"},
                                        .errors = ErrorStream::with_output,
                                        .deadline_seconds = 10});
  if (!said.is_ok()) return "";
  for (const char* own : {"Open MPI", "OpenRTE", "PRTE"})
    if (said.text.find(own) != said.text.npos) return "";
  return fmt::format(
      "; the first mpirun in PATH says of itself \"{}\", and this program was built with {}: put "
      "the mpirun of that first in PATH (module load openmpi)",
      said.text.substr(0, said.text.find('\n')), build_info().mpi.value_or("no MPI"));
}

std::string what_happened(const SupervisedExit& exit, const Job& job, const Supervision& how,
                          const MemoryKills& memory) {
  const std::string launcher = launcher_program(job.request);
  if (job.request.direct && !exit.overdue && !exit.hung)
    return end_words(exit.raw_status) + memory.told();
  if (exit.overdue)
    return fmt::format("stopped after {:g} s, the limit of a launch", *how.limit_seconds);
  if (exit.hung)
    return fmt::format(
        "nothing was heard of rank 0 for {:g} s (--timeout and 10 s): the ranks or {} hang, or "
        "were stopped",
        *how.silence_seconds, launcher);
  if (exit.stopped_by_us)
    return fmt::format("stopped from outside ({} status {})", launcher, exit.raw_status);
  if (is_signal_status(exit.raw_status))
    return fmt::format("a rank or {0} itself was {1} ({0} status {2}){3}", launcher,
                       end_words(exit.raw_status), exit.raw_status, memory.told());
  return fmt::format("{} {}; its own message is {}{}", launcher, end_words(exit.raw_status),
                     job.output.empty() ? "above" : "in " + job.output,
                     other_launcher(job.request));
}

/// Observes whether the jobs are alive: their rank 0 gives a sign every second. Only our own waking
/// counts as time, so that a suspended machine or job is not taken for silence.
class Pulses {
 public:
  Pulses(const std::vector<Job>& jobs, double most_seconds)
      : jobs_(jobs), most_seconds_(most_seconds), heard_(jobs.size()) {}

  bool any_lost() {
    constexpr double kLongestWait = 2;  // the supervisor wakes once a second
    const double now = steady_seconds();
    const double waited = std::min(now - last_, kLongestWait);
    last_ = now;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const auto pulse = jobs_[i].handover.pulse();
      const bool expected = pulse || jobs_[i].request.here;
      heard_[i] = pulse != heard_[i].pulse || !expected ? Heard{pulse, 0}
                                                        : Heard{pulse, heard_[i].silence + waited};
    }
    for (std::size_t i = 0; i < heard_.size() && !lost_; ++i)
      if (heard_[i].silence > most_seconds_) lost_ = i;
    return lost_.has_value();
  }
  /// The first job of which nothing was heard for too long.
  std::optional<std::size_t> lost() const { return lost_; }

 private:
  struct Heard {
    std::optional<std::int64_t> pulse;
    double silence = 0;  ///< seconds since then
  };
  const std::vector<Job>& jobs_;
  double most_seconds_, last_ = steady_seconds();
  std::vector<Heard> heard_;
  std::optional<std::size_t> lost_;
};

bool is_silent(const Job& job) {
  std::error_code error;
  return job.output.empty() ? job.is_silent && job.is_silent()
                            : std::filesystem::file_size(job.output, error) == 0;
}

/// Whether a launcher has ended as mpirun does that is told to while it starts: with status 1 and
/// without a word.
bool was_told_to_end(const SupervisedExit& exit, const Job& job) {
  return exit.raw_status == 1 && !exit.overdue && !exit.hung && !exit.stopped_by_us &&
         !job.request.direct && !job.handover.listens() && is_silent(job);
}

JobEnd end_of(const Job& job, const SupervisedExit& exit, const Supervision& how,
              const MemoryKills& memory) {
  const auto agreed = job.handover.exit_code();
  const auto aborted = job.handover.abort();
  JobEnd end;
  end.stopped = exit.stopped_by_us && !aborted;
  end.hung = exit.hung && !aborted;
  if (end.hung || (exit.overdue && !agreed && !aborted))
    end.code = ExitCode::timeout;
  else if (end.stopped && !agreed)
    end.code = ExitCode::failed;  // whatever status its launcher ends with
  else
    end.code = map_launcher_exit(exit, aborted ? std::optional(aborted->exit_code) : agreed,
                                 job.handover.listens());
  // prterun of Open MPI 5 may end with 0 where it has lost a daemon.
  const bool is_heard = job.handover.listens() || job.request.here;
  if (end.code == ExitCode::ok && !agreed && !aborted && is_heard) end.code = ExitCode::failed;
  end.told = aborted.has_value();
  if (!agreed && !aborted && was_told_to_end(exit, job)) {
    end.code = ExitCode::failed;
    end.reason =
        fmt::format("{} ended before its ranks had begun, and said nothing: it was told to end",
                    launcher_program(job.request));
    return end;
  }
  constexpr int kFirstOfOpenMpi = 160;  // beyond those of signals: its own codes, as 205
  // The ranks have agreed on that, or were gone before they could.
  const bool may_be_lost = agreed ? agreed == static_cast<int>(ExitCode::failed)
                                  : job.handover.listens() && !exit.overdue;
  if (may_be_lost && !aborted && !end.stopped && !end.hung && exit.raw_status >= kFirstOfOpenMpi) {
    end.code = ExitCode::failed;
    end.lost_daemon = true;
    end.reason = what_happened(exit, job, how, memory);
  }
  if (agreed == 0 && end.code == ExitCode::ok && is_signal_status(exit.raw_status) && !end.stopped)
    warn(fmt::format("{} {}, after the record was complete", launcher_program(job.request),
                     end_words(exit.raw_status)));
  if ((!agreed || end.hung) && end.code != ExitCode::ok)
    end.reason = aborted ? aborted->reason : what_happened(exit, job, how, memory);
  if (!agreed && !aborted && !end.stopped && end.code != ExitCode::ok) {
    std::error_code ignored;
    const auto temporary = std::filesystem::temp_directory_path(ignored);
    const std::string full = full_folder({job.handover.path()});  // where results go
    if (!full.empty()) end.code = ExitCode::result;
    end.reason += full.empty() ? full_folder({temporary, "/dev/shm"}) : full;
  }
  return end;
}

}  // namespace

Supervision supervision_of(double timeout) {
  constexpr double kMore = 10;  // the ranks' own deadline comes first
  Supervision how;
  // A stop is agreed on at a step boundary, and a step may take as long as --timeout allows.
  how.grace_seconds = timeout + kMore;
  how.silence_seconds = timeout + kMore;
  return how;
}

JobEnds run_jobs(const std::vector<Job>& jobs, Supervision how) {
  std::vector<ChildProcess> processes;
  for (const Job& job : jobs) {
    require_programs(job.request);
    if (!job.request.direct) {
      refuse_too_small_for_ranks();
      require_descriptors(kDescriptors, launcher_program(job.request).c_str());
    }
    processes.push_back({launch_command(job.request, geteuid() == 0), job.output, [&job] {
                           setenv(kHandoverVariable, job.handover.path().c_str(), 1);
                           if (job.request.launcher == Launcher::srun) {
                             setenv("SLURM_KILL_BAD_EXIT", "1", 1);  // as its flag: ranks see it
                             // Slurm's tree lets a rank leave MPI_Init before others can receive.
                             setenv("SLURM_PMIX_FENCE", "ring", /*overwrite=*/0);
                           }
                           for (const auto& [name, value] : job.environment)
                             setenv(name.c_str(), value.c_str(), 1);
                           for (const auto& [name, value] : job.request.environment)
                             value ? setenv(name.c_str(), value->c_str(), 1)
                                   : unsetenv(name.c_str());
                         }});
    processes.back().streams = job.streams;
  }
  how.listens = [&] {
    return std::ranges::all_of(jobs, [](const Job& job) { return job.handover.listens(); });
  };
  how.has_heard = [&] {
    return std::ranges::all_of(jobs, [](const Job& job) { return job.handover.stop_heard(); });
  };
  how.has_ended = [&] {
    return std::ranges::any_of(jobs,
                               [](const Job& job) { return job.handover.abort().has_value(); }) ||
           std::ranges::all_of(jobs,
                               [](const Job& job) { return job.handover.exit_code().has_value(); });
  };
  Pulses pulses(jobs, how.silence_seconds.value_or(std::numeric_limits<double>::infinity()));
  how.has_hung = [&] { return pulses.any_lost(); };
  const MemoryKills memory;
  const SupervisedExits exits = supervise_all(processes, how);
  JobEnds ends;
  ends.first_failed = exits.first_failed;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    ends.jobs.push_back(end_of(
        jobs[i],
        {exits.raw_status[i], exits.stopped_by_us, exits.overdue, exits.hung && pulses.lost() == i},
        how, memory));
  for (std::size_t i = 0; i < jobs.size(); ++i) ends.jobs[i].ran_out = exits.ran_out[i];
  if (exits.hung) ends.first_failed = pulses.lost();
  const auto aborted = std::ranges::find_if(ends.jobs, &JobEnd::told);
  if (aborted != ends.jobs.end())
    ends.first_failed = static_cast<std::size_t>(aborted - ends.jobs.begin());
  return ends;
}

std::map<std::string, std::string> session_folder(const std::filesystem::path& folder) {
  const char* place = "OMPI_MCA_orte_tmpdir_base";
  if (std::getenv(place)) return {};
  return {{place, folder.string()}};
}

std::string last_lines(const std::filesystem::path& log) {
  std::vector<std::string> lines;
  std::ifstream file(log);
  LauncherOutputFilter filter;
  std::string said;
  for (std::string line; std::getline(file, line);) said += filter.pass(line + "\n");
  std::istringstream rest(said + filter.rest());
  for (std::string line; std::getline(rest, line);)
    if (line.find_first_not_of(" \t\r-") != line.npos) lines.push_back(line);
  std::string text;
  for (std::size_t i = lines.size() - std::min<std::size_t>(3, lines.size()); i < lines.size(); ++i)
    text += (text.empty() ? "" : " | ") + lines[i];
  return text.size() > 600 ? "..." + text.substr(text.size() - 600) : text;
}

namespace {

constexpr std::size_t kDashes = 74;

/// The lines with which the notices of Open MPI 4 (orterun, mpirun) and 5 (prterun) begin.
constexpr std::array<std::string_view, 3> kOpenings{
    "Primary job  terminated normally, but",
    "detected that one or more processes exited with non-zero status",
    "MPI_ABORT was invoked on rank"};

bool is_of_dashes(std::string_view line) {
  return line.size() == kDashes && line.find_first_not_of('-') == line.npos;
}

bool may_become_dashes(std::string_view begin) {
  return begin.size() <= kDashes && begin.find_first_not_of('-') == begin.npos;
}

bool opens_a_block(std::string_view line) {
  return std::ranges::any_of(kOpenings,
                             [&](std::string_view words) { return line.find(words) != line.npos; });
}

}  // namespace

std::string LauncherOutputFilter::pass(std::string_view bytes) {
  std::string passed;
  waiting_ += bytes;
  for (;;) {
    const std::size_t end = waiting_.find('\n');
    const std::string_view line = std::string_view(waiting_).substr(0, end);
    if (end == waiting_.npos) break;
    if (inside_) {
      inside_ = !is_of_dashes(line);
      waiting_.erase(0, end + 1);
      continue;
    }
    if (!is_of_dashes(line)) {
      passed += take_line();
      continue;
    }
    const std::size_t next_end = waiting_.find('\n', end + 1);
    if (next_end == waiting_.npos) return passed;
    inside_ = opens_a_block(std::string_view(waiting_).substr(end + 1, next_end - end - 1));
    if (inside_)
      waiting_.erase(0, next_end + 1);
    else
      passed += take_line();
  }
  if (!inside_ && !may_become_dashes(waiting_)) passed += std::exchange(waiting_, "");
  return passed;
}

std::string LauncherOutputFilter::take_line() {
  std::string line = waiting_.substr(0, waiting_.find('\n') + 1);
  waiting_.erase(0, line.size());
  return line;
}

std::string LauncherOutputFilter::rest() {
  std::string text = std::exchange(waiting_, "");
  return inside_ ? "" : text;
}

}  // namespace scalemark
