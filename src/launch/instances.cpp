// Starts instances side by side, watches them, and writes their record.
#include "launch/instances.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "config/keys.hpp"
#include "config/sweep_plan.hpp"
#include "config/value_syntax.hpp"
#include "launch/engine_start.hpp"
#include "launch/job.hpp"
#include "launch/launch.hpp"
#include "launch/launch_builder.hpp"
#include "measure/clock.hpp"
#include "models/catalog.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"
#include "record/write.hpp"
#include "rendezvous/start_barrier.hpp"
#include "result/runs_folder.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Names the records and logs of the instances, which are beside the record, or in a temporary
/// folder.
class Files {
 public:
  explicit Files(const OutputSettings& settings) : record_(output_file(settings)) {
    if (record_) {
      runs_ = std::make_unique<RunsFolder>(record_->path());
    } else {
      temporary_ = std::make_unique<TemporaryFolder>();
    }
  }

  /// What an earlier command with this output had measured when it was ended.
  std::optional<InstancesResult> begun() const {
    return runs_ ? result_at<InstancesResult>(partial()) : std::nullopt;
  }
  /// The run record by its name in the record.
  fs::path file_of(const std::string& name) const { return folder_of(record_->path()) / name; }
  /// The files with these names are of this command, too; what else earlier ones have left goes at
  /// its end.
  void take_over(const std::vector<std::string>& names) {
    if (!runs_) return;
    for (const std::string& name : names) runs_->keep(name);
    if (!names.empty()) record_->continue_older();
    runs_->replace_strays();
  }
  /// Lets the same command go on from here, where there is room for that.
  void keep(const InstancesResult& so_far) const {
    try {
      if (runs_)
        ResultFile(partial(), /*reserved_bytes=*/0, "--output", Older::replaced)
            .write(record_json(so_far));
    } catch (const ResultError&) {
    }
  }

  fs::path folder() const { return fs::absolute(runs_ ? runs_->path() : temporary_->path()); }
  /// Returns the name by which the record refers to a file of the folder, or an empty text where
  /// the file is not kept.
  std::string name_of(const fs::path& file) const { return runs_ ? runs_->name_of(file) : ""; }
  void write(const InstancesResult& result, bool json) {
    deliver(record_json(result), record_.get(), json);
    if (!record_) return;
    runs_->remove_older(record_->kept());
    std::error_code ignored;
    if (result.status == Status::ok) fs::remove(partial(), ignored);
    say_progress("record: " + record_->path().string());
  }

 private:
  /// Readers of folders pass it by.
  fs::path partial() const { return runs_->path() / ".partial"; }

  std::unique_ptr<ResultFile> record_;
  std::unique_ptr<RunsFolder> runs_;
  std::unique_ptr<TemporaryFolder> temporary_;
};

class Instances {
 public:
  explicit Instances(const InstancesRequest& request)
      : request_(request), plan_(request.plan), sets_(slot_sets(plan_)) {}

  void print() const {
    for (std::size_t i = 0; i < plan_.slots.size(); ++i)
      print_data(fmt::format("slot {}: {}\n    {}\n", i, plan_.slots[i].title(),
                             shell_quoted(launch_command(
                                 instance_request(request_, i, "RECORD.json"), geteuid() == 0))));
    const auto repeats = static_cast<std::size_t>(plan_.repeats);
    say_progress(fmt::format("{}: every slot alone, and {} instances at once, {}",
                             counted(sets_.size() * repeats, "launch"),
                             fmt::join(plan_.instances, ", "), counted(repeats, "time")));
  }

  ExitCode run(LaunchProgress& progress,
               const std::function<void(const InstancesResult&)>& report) {
    const HeldSignals until_the_record_is_written;
    const ResolvedConfig& config = plan_.config.config;
    for (const std::string& warning : plan_.config.warnings) warn(warning);
    Files files(config);
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
      const Slot& slot = plan_.slots[i];
      say_progress(fmt::format("slot {}: {}{}", i, slot.title(),
                               plan_.ranks > 1 ? fmt::format(", {} ranks", plan_.ranks) : ""));
      if (slot.is_crowded(plan_.ranks))
        say_progress(fmt::format("slot {} has fewer CPUs than ranks: they share them", i));
    }
    const auto order = launch_order(sets_.size(), plan_.repeats, config.seed);
    resume(files);
    progress.expect(order.size() - launches_.size());
    for (const auto& [index, repeat] : order) {
      if (is_done(sets_[index], repeat)) continue;
      progress.start(title(sets_[index]), repeat);
      if (measure(files, sets_[index], repeat, progress)) break;
    }
    const InstancesResult result = make_record();
    files.write(result, config.json);
    report(result);
    return stopped_ ? ExitCode::failed : code_;
  }

 private:
  bool is_done(const std::vector<std::size_t>& slots, std::int64_t repeat) const {
    return std::ranges::any_of(launches_, [&](const InstanceLaunch& launch) {
      return launch.repeat == repeat &&
             std::ranges::equal(launch.instances, slots, {}, &MeasuredInstance::slot);
    });
  }

  /// Takes over the launches that an earlier command has measured whole, on these slots, by this
  /// build and under these variables, before it was ended.
  void resume(Files& files) {
    std::vector<std::string> names;
    if (const auto begun = files.begun()) {
      const InstancesResult now = make_record();
      const bool alike = begun->config_hash == now.config_hash &&
                         Origins{begun->build, begun->system, begun->environment} ==
                             Origins{now.build, now.system, now.environment} &&
                         std::ranges::equal(begun->slots, now.slots, {}, part_json<record::Slot>,
                                            part_json<record::Slot>);
      if (alike) {
        for (const record::SlotAlone& alone : begun->alone) take(alone.repeats, files, names);
        for (const record::InstancesPoint& point : begun->points) take(point.repeats, files, names);
      }
      say_progress(launches_.empty()
                       ? "what an earlier command measured otherwise, by another build, on another "
                         "machine or under other variables is measured again"
                       : fmt::format("{} of an earlier command {} done",
                                     counted(launches_.size(), "launch"),
                                     launches_.size() == 1 ? "is" : "are"));
    }
    files.take_over(names);
  }

  void take(const std::vector<record::LaunchOfJobs>& repeats, const Files& files,
            std::vector<std::string>& names) {
    for (const record::LaunchOfJobs& repeat : repeats) {
      InstanceLaunch launch{repeat.repeat, {}, {}};
      std::vector<std::size_t> slots;
      for (const record::LaunchedJob& job : repeat.instances) {
        if (auto instance = read(job, files)) launch.instances.push_back(*std::move(instance));
        slots.push_back(job.slot);
      }
      if (repeat.status != Status::ok || launch.instances.size() != slots.size() ||
          is_done(slots, repeat.repeat))
        continue;
      for (const MeasuredInstance& instance : launch.instances) names.push_back(instance.run_path);
      launches_.push_back(std::move(launch));
    }
  }

  /// An instance by its run record and the window that the barrier saw; nothing where it is gone.
  std::optional<MeasuredInstance> read(const record::LaunchedJob& job, const Files& files) const {
    if (!job.path || !job.run || !job.window_seconds) return std::nullopt;
    const fs::path file = files.file_of(*job.path);
    return plan_.config.command == Command::infer
               ? read(job, result_at<InferenceResult>(file), &InferenceResult::latency_seconds)
               : read(job, result_at<RunResult>(file), &RunResult::step_seconds);
  }

  template <typename T, typename Times>
  static std::optional<MeasuredInstance> read(const record::LaunchedJob& job,
                                              const std::optional<T>& run, Known<Times> T::*times) {
    if (!run || run->id != *job.run || run->status != Status::ok || !run->throughput ||
        !run->wall_seconds || !((*run).*times))
      return std::nullopt;
    MeasuredInstance instance = measured_instance(*run, ((*run).*times)->samples, job.slot,
                                                  {job.window_seconds->lo, job.window_seconds->hi});
    instance.run_path = *job.path;
    return instance;
  }

  static std::string title(const std::vector<std::size_t>& slots) {
    return slots.size() == 1 ? fmt::format("slot {} alone", slots.front())
                             : fmt::format("{} instances", slots.size());
  }

  /// Measures once. Returns true where this was the last measurement.
  bool measure(const Files& files, const std::vector<std::size_t>& slots, std::int64_t repeat,
               LaunchProgress& progress) {
    const double start = steady_seconds();
    const std::string name = fmt::format(
        "{}-repeat{}", slots.size() == 1 ? "alone" : fmt::format("{}-instances", slots.size()),
        repeat);
    LaunchedInstances launched =
        launch_instances(request_, slots, files.folder(), name + "-" + tag_);
    launched.launch.repeat = repeat;
    for (MeasuredInstance& result : launched.launch.instances) {
      if (!result.run_path.empty()) result.run_path = files.name_of(result.run_path);
      if (!result.log_path.empty()) result.log_path = files.name_of(result.log_path);
    }
    progress.finish(steady_seconds() - start, outcome(launched.launch));
    if (launched.launch.outcome.status == Status::interrupted)
      stopped_ = true;
    else
      code_ = most_severe(code_, launched.code);
    launches_.push_back(std::move(launched.launch));
    files.keep(make_record());
    // A file that cannot be written now cannot be written by the next launch either.
    return stopped_ || launched.code == ExitCode::result;
  }

  std::string outcome(const InstanceLaunch& launch) const {
    if (!launch.outcome.ok())
      return fmt::format("{}: {}", to_string(launch.outcome.status), launch.outcome.reason);
    const LaunchFigures figures = launch_figures(launch.instances);
    const std::string rate =
        fmt::format("{} {}", four_digits(figures.throughput), unit_of(plan_.config.config));
    if (launch.instances.size() == 1) return rate;
    return fmt::format("{} together, overlap {:.3f}", rate, figures.overlap);
  }

  InstancesResult make_record() const {
    Outcome outcome;  // the first that is not ok, or the interruption
    for (const InstanceLaunch& launch : launches_)
      if (!launch.outcome.ok() && (outcome.ok() || launch.outcome.status == Status::interrupted))
        outcome = launch.outcome;
    return make_instances_record(
        {plan_.config, system_info(), recorded_environment(process_environment())}, plan_,
        launches_, outcome);
  }

  const InstancesRequest& request_;
  const InstancesPlan& plan_;
  std::vector<std::vector<std::size_t>> sets_;
  /// Of this call, so that files of an earlier one stay until its record is replaced.
  std::string tag_ = random_uuid().substr(0, 8);
  std::vector<InstanceLaunch> launches_;
  ExitCode code_ = ExitCode::ok;
  bool stopped_ = false;
};

}  // namespace

void print_instances(const InstancesRequest& request) { Instances(request).print(); }

ExitCode run_instances(const InstancesRequest& request, LaunchProgress& progress,
                       const std::function<void(const InstancesResult&)>& report) {
  return Instances(request).run(progress, report);
}

namespace {
namespace fs = std::filesystem;

bool any_elsewhere(const InstancesPlan& plan) {
  return !std::ranges::all_of(plan.slots, &Slot::is_here);
}

std::vector<int> ranks_of_jobs(const InstancesPlan& plan, std::size_t jobs) {
  return std::vector<int>(jobs, static_cast<int>(plan.ranks));
}

class Launch {
 public:
  Launch(const InstancesRequest& request, const std::vector<std::size_t>& slots,
         const fs::path& folder, const std::string& name)
      : request_(request),
        slots_(slots),
        stem_(folder / name),
        starter_(local_.path(), ranks_of_jobs(request.plan, slots.size()),
                 any_elsewhere(request.plan)) {}

  LaunchedInstances run() {
    Supervision how = supervision_of(request_.plan.config.config.timeout);
    how.end_seconds = 0;
    how.limit_seconds = request_.launch_timeout;
    how.inputs = [this] { return starter_.inputs(); };
    // An instance that was asked to stop may still reach the barrier. It does not release the
    // others.
    const double limit = steady_seconds() + request_.launch_timeout;
    const auto listen = [&] {
      if (steady_seconds() < limit) starter_.update();
    };
    how.on_wake = listen;
    ends_ = run_jobs(jobs(), how);
    listen();  // to what was said last

    LaunchedInstances launched;
    for (std::size_t i = 0; i < slots_.size(); ++i) read(launched.launch, i);
    set_outcome(launched);
    for (std::size_t i = 0; i < slots_.size(); ++i) keep_log(launched.launch, i);
    return launched;
  }

 private:
  fs::path file(std::size_t i, const char* extension) const {
    return stem_.string() + fmt::format("-slot{}{}", slots_[i], extension);
  }
  const Slot& slot(std::size_t i) const { return request_.plan.slots[slots_[i]]; }
  std::string title(std::size_t i) const {
    return fmt::format("the instance on slot {} ({})", slots_[i], slot(i).title());
  }

  std::vector<Job> jobs() {
    std::vector<Job> made;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      // This comes first, since it sets a variable that goes to other hosts.
      handovers_.push_back(std::make_unique<HandoverFolder>(stem_.parent_path()));
      LaunchRequest asked = instance_request(request_, slots_[i], file(i, ".json"));
      asked.environment.push_back(starter_.variable(i));
      const fs::path session = local_.path() / fmt::format("session-{}", i);
      fs::create_directory(session);
      made.push_back({std::move(asked), *handovers_.back(), file(i, ".log").string(),
                      session_folder(session)});
    }
    return made;
  }

  /// Reads what instance i left.
  void read(InstanceLaunch& launch, std::size_t i) {
    MeasuredInstance result;
    result.slot = slots_[i];
    outcomes_.emplace_back();
    try {
      if (fs::exists(file(i, ".json"))) {
        if (request_.plan.config.command == Command::infer)
          read_job(result, i, &InferenceResult::latency_seconds);
        else
          read_job(result, i, &RunResult::step_seconds);
      }
    } catch (const Error&) {  // whatever wrote it, it is no record of ours
    }
    complete_ = complete_ && result.units > 0;
    launch.instances.push_back(std::move(result));
  }

  /// `times`: of its steps or queries.
  template <typename T, typename Times>
  void read_job(MeasuredInstance& result, std::size_t i, Known<Times> T::*times) {
    const T job = read_typed_record<T>(file(i, ".json"));
    outcomes_.back() = {job.status, job.reason};
    const auto window = starter_.window(i);
    if (job.status == Status::ok && window && job.throughput && job.wall_seconds && job.*times)
      result = measured_instance(job, (job.*times)->samples, slots_[i], *window);
    result.run_id = job.id;
    result.run_path = file(i, ".json").string();
  }

  /// The first that failed by itself. Those that end together with all others have said what they
  /// ended with before anybody saw them end.
  std::optional<std::size_t> first_failed() const {
    if (ends_.first_failed) return ends_.first_failed;
    const auto found = std::ranges::find_if(
        ends_.jobs, [](const JobEnd& end) { return end.code != ExitCode::ok; });
    if (found == ends_.jobs.end()) return std::nullopt;
    return static_cast<std::size_t>(found - ends_.jobs.begin());
  }

  void set_outcome(LaunchedInstances& launched) const {
    const auto failed = first_failed();
    Outcome& outcome = launched.launch.outcome;
    if (std::ranges::any_of(ends_.jobs, &JobEnd::stopped))
      outcome = {Status::interrupted, "stopped from outside"};
    else if (std::ranges::any_of(ends_.jobs, &JobEnd::ran_out))
      outcome = {Status::timeout, late()};
    else if (!failed && !complete_)
      outcome = {Status::failed,
                 "an instance ended without a record or without its measured window"};
    launched.code = exit_code_of(outcome.status);
    if (!outcome.ok() || !failed) return;
    launched.code = ends_.jobs[*failed].code;
    // Woken to be ended, it may still have said that it was asked to stop.
    if (ends_.jobs[*failed].hung) {
      outcome = {Status::timeout,
                 fmt::format("{}: {}", title(*failed), ends_.jobs[*failed].reason)};
      return;
    }
    outcome = {status_of_failed(launched.code, outcomes_[*failed]), cause(*failed)};
  }

  /// Of an instance that failed by itself: nobody has stopped it.
  static Status status_of_failed(ExitCode code, const std::optional<Outcome>& told) {
    if (!told) return status_of_launch(code, /*stopped=*/false);
    return told->status == Status::timeout || told->status == Status::invalid ? told->status
                                                                              : Status::failed;
  }

  std::string late() const {
    std::string names;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!ends_.jobs[i].ran_out) continue;
      const bool waited = starter_.is_ready(i) && !starter_.has_started();
      names += fmt::format("{}{}{}", names.empty() ? "" : ", ", title(i),
                           waited ? " (waiting for the others)" : "");
    }
    return fmt::format("not over after {:g} s (--launch_timeout): {}", request_.launch_timeout,
                       names);
  }

  std::string cause(std::size_t i) const {
    if (const auto& told = outcomes_[i]; told && !told->reason.empty())
      return fmt::format("{}: {}", title(i), told->reason);
    const std::string tail = last_lines(file(i, ".log"));
    return fmt::format("{}: {}; {}", title(i), ends_.jobs[i].reason,
                       tail.empty() ? "its log is empty" : "its log ends: " + tail);
  }

  void keep_log(InstanceLaunch& launch, std::size_t i) const {
    const fs::path log = file(i, ".log");
    std::error_code ignored;
    if (launch.outcome.ok())
      fs::remove(log, ignored);
    else if (fs::exists(log, ignored))
      launch.instances[i].log_path = log.string();
  }

  const InstancesRequest& request_;
  const std::vector<std::size_t>& slots_;
  fs::path stem_;
  TemporaryFolder local_;  // for sockets: not on a network file system
  Starter starter_;
  std::vector<std::unique_ptr<HandoverFolder>> handovers_;
  JobEnds ends_;
  std::vector<std::optional<Outcome>> outcomes_;  ///< of the records that they left
  bool complete_ = true;
};

/// Returns the arguments of the job, followed by those that the supervisor decides.
std::vector<std::string> arguments_of(const InstancesRequest& request, std::size_t slot) {
  const LoadedConfig& loaded = request.plan.config;
  std::vector<std::string> words = request.arguments;
  const auto number = static_cast<std::int64_t>(slot);
  if (request.inject && (request.inject->rank < 0 || request.inject->rank == number)) {
    Injection fault = *request.inject;
    fault.rank = std::min<std::int64_t>(fault.rank, 0);  // an instance has one rank
    words.push_back("--inject=" + to_string(fault));
  }
  const auto& folder = loaded.config.checkpoint_dir;
  if (folder) words.push_back(fmt::format("--checkpoint_dir={}/slot{}", *folder, slot));
  if (loaded.command == Command::run) words.emplace_back("--dry_run=false");
  words.emplace_back("--json=false");
  return words;
}

}  // namespace

LaunchRequest instance_request(const InstancesRequest& request, std::size_t slot,
                               const fs::path& record) {
  const ResolvedConfig& config = request.plan.config.config;
  const Slot& place = request.plan.slots[slot];
  const auto ranks = static_cast<std::size_t>(request.plan.ranks);
  LaunchDescription described;
  described.program = own_path();
  described.command = request.plan.config.command;
  described.arguments = arguments_of(request, slot);
  described.output = record;
  described.ranks = static_cast<int>(ranks);
  described.launcher = config.launcher;
  described.hostfile = config.hostfile;
  described.hosts = place.hosts();
  described.ranks_per_node = static_cast<int>(ranks / described.hosts.size());
  described.elsewhere = !place.is_here();
  described.binds_itself = true;
  described.direct = place.is_here() && config.ranks.empty();
  described.environment = {{kSlotVariable, slot_words(place.places, ranks / place.places.size())}};
  described.container = config;
  described.results = record.parent_path();
  described.gpus = !place.places.front().uuid.empty();
  LaunchRequest asked = build_launch(described, process_environment());
  tell_ranks(asked);
  return asked;
}

LaunchedInstances launch_instances(const InstancesRequest& request,
                                   const std::vector<std::size_t>& slots, const fs::path& folder,
                                   const std::string& name) {
  return Launch(request, slots, folder, name).run();
}

}  // namespace scalemark
