// Plans, launches and supervises the ranks of a command.
#include "launch/rank_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "analysis/scaling/scaling.hpp"
#include "config/curves.hpp"
#include "error.hpp"
#include "launch/engine_start.hpp"
#include "launch/job.hpp"
#include "launch/launch_builder.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "result/inference_record.hpp"
#include "result/preflight_record.hpp"
#include "result/run_record.hpp"
#include "result/runs_folder.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

// Relay passes on what a job prints to stdout and stderr of this process, without mpirun's standard
// notices. Launchers end a job whose output nobody reads any more (mpirun after ten broken pipes);
// Relay reads everything, and passes on what it can.

class Relay {
 public:
  /// `only_data`: of stdout, lines that ranks have marked go there, others to stderr. Throws
  /// EnvironmentError where there are no descriptors left, std::system_error without threads.
  explicit Relay(bool only_data);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Returns the ends of the pipes that the job writes to, for stdout and stderr.
  int out() const { return pipes_[0].write_end; }
  int err() const { return pipes_[1].write_end; }

  /// Passes on the rest of what was written. Call it when no process of the job is left. Others may
  /// still hold an end of the pipes, such as what a launcher's agent has started: they are not
  /// waited for.
  void finish();
  bool is_silent() const { return !pipes_[0].any && !pipes_[1].any; }
  /// Returns, after finish(), whether some of the job's stdout has reached nobody.
  bool has_lost_data() const { return pipes_[0].lost; }

 private:
  struct Pipe {
    int read_end = -1, write_end = -1;
    std::atomic<bool> lost = false, any = false;  ///< some of it reached nobody; there was some
    std::thread thread;
  };
  void pass_on(Pipe& pipe, int destination) const;

  bool only_data_;
  int over_;  ///< readable when the job has ended
  std::array<Pipe, 2> pipes_;
};

Relay::Relay(bool only_data) : only_data_(only_data), over_(eventfd(0, EFD_CLOEXEC)) {
  // Signals are for the thread that supervises.
  sigset_t all, before;
  sigfillset(&all);
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    int ends[2];
    if (over_ < 0 || pipe2(ends, O_CLOEXEC) != 0) {
      const int error = errno;
      finish();
      throw EnvironmentError(fmt::format("cannot make a pipe: {}", std::strerror(error)));
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);  // of this end alone
    pipes_[i].read_end = ends[0];
    pipes_[i].write_end = ends[1];
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      pipes_[i].thread = std::thread(&Relay::pass_on, this, std::ref(pipes_[i]),
                                     i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    } catch (const std::system_error&) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      finish();
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

Relay::~Relay() { finish(); }

void Relay::finish() {
  const auto close_one = [](int& descriptor) {
    if (descriptor >= 0) close(std::exchange(descriptor, -1));
  };
  if (over_ >= 0) eventfd_write(over_, 1);
  for (Pipe& pipe : pipes_) {
    close_one(pipe.write_end);
    if (pipe.thread.joinable()) pipe.thread.join();
    close_one(pipe.read_end);
  }
  close_one(over_);
}

void Relay::pass_on(Pipe& pipe, int destination) const {
  std::array<char, 65536> buffer;
  LauncherOutputFilter filter;  // on stderr alone: stdout is data
  DataLines lines;
  const bool filtered = destination == STDERR_FILENO, split = only_data_ && !filtered;
  const auto write = [&](std::string_view bytes) {
    // What follows a loss is no data any more.
    if (!pipe.lost && write_whole(destination, bytes) != 0) pipe.lost = true;
  };
  const auto write_parts = [&](const DataLines::Parts& parts) {
    write(parts.data);
    write_whole(STDERR_FILENO, parts.others);
  };
  std::optional<int> left;  // bytes that are in the pipe when the job has ended
  for (;;) {
    std::array<pollfd, 2> watched{{{pipe.read_end, POLLIN, 0}, {over_, POLLIN, 0}}};
    if (!left && poll(watched.data(), watched.size(), -1) < 0) continue;
    if (!left && watched[1].revents != 0) ioctl(pipe.read_end, FIONREAD, &left.emplace(0));
    if (left && *left <= 0) break;
    const ssize_t got = read(pipe.read_end, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || (errno == EAGAIN && !left))) continue;
    if (got <= 0) break;
    if (left) *left -= static_cast<int>(got);
    pipe.any = true;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    if (split)
      write_parts(lines.pass(bytes));
    else
      write(filtered ? filter.pass(bytes) : bytes);
  }
  if (split) write_parts(lines.rest());
  if (filtered) write(filter.rest());
}

RecordContext context_of(const LoadedConfig& loaded) {
  return {loaded, system_info(), recorded_environment(process_environment())};
}

/// Returns the results for a job from whose ranks nothing was received.
PartialResults no_curve(const LoadedConfig& loaded, int ranks, const Outcome& outcome) {
  const CurveConfig first = curves_of(loaded.config).front();
  LoadedConfig measured = loaded;
  measured.config = first.config;
  PartialResults partial;
  partial.record = curve_json(make_scaling_record(context_of(measured), ranks, {}, {}, outcome));
  if (first.config.output) partial.path = curve_path(*first.config.output, first.name).string();
  return partial;
}

PartialResults nothing_measured(const LoadedConfig& loaded, int ranks, const Outcome& outcome) {
  if (loaded.command == Command::scale) return no_curve(loaded, ranks, outcome);
  const auto make = loaded.command == Command::run     ? make_failed_record
                    : loaded.command == Command::infer ? make_failed_inference_record
                                                       : make_failed_preflight_record;
  PartialResults partial;
  partial.record = make(context_of(loaded), ranks, outcome);
  partial.path = loaded.config.output.value_or("");
  return partial;
}

/// Launchers tag what they read, which need not be whole lines: they are not to, where the lines
/// are data.
void ask_for_marked_data() {
  for (const char* name :
       {"OMPI_MCA_orte_tag_output", "OMPI_MCA_orte_timestamp_output", "OMPI_MCA_orte_xml_output",
        "PRTE_MCA_prte_tag_output", "PRTE_MCA_prte_timestamp_output", "SLURM_LABELIO"})
    unsetenv(name);
  setenv(kMarksData, "1", 1);
}

/// Whether all curves that were asked for are measured and written: what comes after that is lost
/// for nobody.
bool is_complete(const LoadedConfig& loaded, const HandoverFolder& handover) {
  if (loaded.command != Command::scale) return false;
  const auto partial = handover.partial();
  return partial && partial->record.is_null() &&
         partial->finished.size() == curves_of(loaded.config).size() &&
         std::ranges::all_of(partial->finished, [](const Json& record) {
           return envelope_of(record).status == Status::ok;
         });
}

/// Writes the record that the job could not write itself: the partial results, with the reason.
void publish_partial(const LoadedConfig& loaded, int ranks, const HandoverFolder& handover,
                     const JobEnd& end) {
  const ResolvedConfig& config = loaded.config;
  const Outcome outcome{status_of_launch(end.code, end.stopped), end.reason};
  auto partial = handover.partial();
  const bool single = loaded.command != Command::scale;
  if (partial && single && partial->path.empty()) partial.reset();  // rank 0 has printed it
  // The final message of a single measurement is its record already.
  if (!partial && end.told && single) return;
  if (!partial && !leaves_a_record(end.code)) return;
  if (!partial || (end.lost_daemon && single)) partial = nothing_measured(loaded, ranks, outcome);
  Json& records = partial->finished;
  Json& record = partial->record;
  // Ranks that were ended because nothing was heard of them may still have written theirs.
  if (record.is_null() && end.hung && !records.empty()) {
    record = records.back();
    records.erase(records.size() - 1);
  }
  if (!record.is_null()) {
    set_outcome(record, outcome);
    if (!partial->path.empty()) {
      OutputSettings to = config;
      to.output = partial->path;
      const auto file = output_file(to);
      std::optional<RunsFolder> runs;
      if (!single) runs.emplace(file->path());
      if (record.value("kept_rounds", 0) > 0) file->continue_older();
      file->write(record);
      if (runs && !file->kept().empty()) runs->remove_older(file->kept());
      say_info(fmt::format("what was measured so far is in {}", file->path().string()));
    }
    records.push_back(std::move(record));
  }
  if (!config.json || records.empty()) return;
  print_data(record_text(curves_of(config).size() == 1 ? records.front() : records));
}

void announce(const RankJob& job) {
  const std::string launcher = launcher_program(job.request);
  const std::string points = job.points.ranks.size() == 1
                                 ? ""
                                 : fmt::format("; points: {}", fmt::join(job.points.ranks, ", "));
  say_info(fmt::format("{} starts {} with {} each{}", launcher,
                       counted(static_cast<std::size_t>(job.request.ranks), "rank"),
                       counted(static_cast<std::size_t>(job.request.cpus_per_rank), "core"),
                       points));
  if (job.request.oversubscribe)
    say_info("more ranks than cores: they share cores and are not bound");
  if (geteuid() == 0 && launcher == "mpirun")
    say_info("running as root: mpirun gets --allow-run-as-root");
}

std::filesystem::path result_folder(const ResolvedConfig& config) {
  // Launchers need it too.
  const std::filesystem::path temporary = temporary_folder();
  return config.output ? folder_of(*config.output) : temporary;
}

}  // namespace

PlannedRanks plan_ranks(const ResolvedConfig& config, const Resources& resources) {
  PlannedRanks launch;
  const int per_host =
      resources.gpus_per_host > 0 ? resources.gpus_per_host : resources.cores_per_host;
  if (config.ranks_per_node) launch.ranks_per_node = static_cast<int>(*config.ranks_per_node);
  if (config.ranks.empty() && resources.hosts > 1 && !launch.ranks_per_node)
    launch.ranks_per_node = per_host;  // points fill one node after the other
  const std::int64_t on_node = launch.ranks_per_node.value_or(per_host);
  launch.ranks =
      config.ranks.empty() ? default_ranks(on_node * resources.hosts, on_node) : config.ranks;
  launch.largest = static_cast<int>(launch.ranks.back());
  launch.placement = place_ranks(launch.largest, resources, launch.ranks_per_node);
  return launch;
}

RankJob rank_job(const LoadedConfig& loaded, const std::vector<std::string>& arguments) {
  const ResolvedConfig& config = loaded.config;
  const auto environment = process_environment();
  const Resources resources = find_resources(config.device, config.hostfile, environment);
  // As `run` without a launcher is: --again starts that so, to measure it alike.
  const bool direct = loaded.command != Command::scale && config.ranks.empty();
  const PlannedRanks points = direct ? PlannedRanks{{1}, 1, {}, place_ranks(1, resources, {})}
                                     : plan_ranks(config, resources);
  if (!config.largest_batch) check_points(config, points.ranks);
  if (points.ranks_per_node && !config.dry_run)
    refuse_too_few_hosts(points.largest, resources, *points.ranks_per_node);
  LaunchDescription described;
  described.program = own_path();
  described.command = loaded.command;
  described.arguments = arguments;
  described.ranks = points.largest;
  described.ranks_per_node = points.ranks_per_node;
  described.tells_ranks_per_node = !config.ranks_per_node;
  described.cpus_per_rank = points.placement.cpus_per_rank;
  described.oversubscribe = points.placement.oversubscribe;
  described.direct = direct;
  described.fixed_threads = direct;
  if (direct) described.binding = Binding::none;
  described.launcher = config.launcher;
  described.hostfile = config.hostfile;
  described.named = resources.named;
  described.elsewhere = resources.elsewhere;
  described.container = config;
  described.results = result_folder(config);
  described.gpus = resources.gpus_per_host > 0;
  return {points, build_launch(described, environment)};
}

ExitCode supervise_ranks(const LoadedConfig& loaded, RankJob job, PartialResults* measured) {
  const ResolvedConfig& config = loaded.config;
  const HandoverFolder handover(result_folder(config));
  if (config.json) ask_for_marked_data();
  if (!job.request.direct) {
    tell_ranks(job.request);
    announce(job);
  }
  lend_colours();
  Relay relay(config.json);
  const Job launched{job.request,
                     handover,
                     {},
                     {},
                     {relay.out(), relay.err()},
                     [&relay] { return relay.is_silent(); }};
  const JobEnd end = run_jobs({launched}, supervision_of(config.timeout)).jobs.front();
  relay.finish();
  if (measured) *measured = handover.partial().value_or(PartialResults());
  if (!end.reason.empty()) {
    if (!end.told) say_error(end.reason);
    if (!config.json && is_complete(loaded, handover)) {
      warn("that was after the record was complete");
      return ExitCode::ok;
    }
    publish_partial(loaded, job.points.largest, handover, end);
  }
  if (end.code == ExitCode::ok && relay.has_lost_data() && (config.json || !config.output))
    throw StdoutError("what the ranks wrote did not all get there");
  return end.code;
}

}  // namespace scalemark
