// See instances.hpp.
#include "launch/instances.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "config/sweep_plan.hpp"
#include "launch/instance_launch.hpp"
#include "launch/launch.hpp"
#include "measure/clock.hpp"
#include "models/catalog.hpp"
#include "platform/platform.hpp"
#include "platform/temporary_folder.hpp"
#include "result/runs_folder.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Where records and logs of the instances lie: beside the record, or for the time being.
class Files {
 public:
  explicit Files(const std::optional<std::string>& output) {
    if (output) {
      record_ = std::make_unique<ResultFile>(*output);
      runs_ = std::make_unique<RunsFolder>(record_->path());
    } else {
      temporary_ = std::make_unique<TemporaryFolder>();
    }
  }

  fs::path folder() const { return fs::absolute(runs_ ? runs_->path() : temporary_->path()); }
  /// As the record names a file of the folder; empty where it is not kept.
  std::string name_of(const fs::path& file) const { return runs_ ? runs_->name_of(file) : ""; }
  void write(const Json& record, bool json) {
    deliver(record, record_.get(), json);
    if (!record_) return;
    runs_->remove_older();
    say("record: " + record_->path().string());
  }

 private:
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
      put(fmt::format("slot {}: {}\n    {}\n", i, plan_.slots[i].title(),
                      shell_quoted(launch_command(instance_request(request_, i, "RECORD.json"),
                                                  geteuid() == 0))));
    const auto repeats = static_cast<std::size_t>(plan_.repeats);
    say(fmt::format("{}: every slot alone, and {} instances at once, {}",
                    counted(sets_.size() * repeats, "launch"), fmt::join(plan_.instances, ", "),
                    counted(repeats, "time")));
  }

  ExitCode run(LaunchProgress& progress, const std::function<void(const Json&)>& report) {
    const HeldSignals until_the_record_is_written;
    const ResolvedConfig& config = plan_.config.config;
    for (const std::string& warning : plan_.config.warnings) say("warning: " + warning);
    Files files(config.output);
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
      const Slot& slot = plan_.slots[i];
      say(fmt::format("slot {}: {}{}", i, slot.title(),
                      plan_.ranks > 1 ? fmt::format(", {} ranks", plan_.ranks) : ""));
      if (slot.is_crowded(plan_.ranks))
        say(fmt::format("slot {} has fewer CPUs than ranks: they share them", i));
    }
    const auto order = launch_order(sets_.size(), plan_.repeats, config.seed);
    progress.expect(order.size());
    for (const auto& [index, repeat] : order) {
      progress.start(title(sets_[index]), repeat);
      if (measure(files, sets_[index], repeat, progress)) break;
    }
    const Json record = make_record();
    files.write(record, config.json);
    report(record);
    return stopped_ ? ExitCode::failed : code_;
  }

 private:
  static std::string title(const std::vector<std::size_t>& slots) {
    return slots.size() == 1 ? fmt::format("slot {} alone", slots.front())
                             : fmt::format("{} instances", slots.size());
  }

  /// True where this was the last.
  bool measure(const Files& files, const std::vector<std::size_t>& slots, std::int64_t repeat,
               LaunchProgress& progress) {
    const double start = steady_seconds();
    const std::string name = fmt::format(
        "{}-repeat{}", slots.size() == 1 ? "alone" : fmt::format("{}-instances", slots.size()),
        repeat);
    LaunchedInstances launched =
        launch_instances(request_, slots, files.folder(), name + "-" + tag_);
    launched.launch.repeat = repeat;
    for (InstanceResult& result : launched.launch.instances) {
      if (!result.run_path.empty()) result.run_path = files.name_of(result.run_path);
      if (!result.log_path.empty()) result.log_path = files.name_of(result.log_path);
    }
    progress.finish(steady_seconds() - start, outcome(launched.launch));
    if (launched.launch.outcome.status == Status::interrupted)
      stopped_ = true;
    else
      code_ = most_severe(code_, launched.code);
    launches_.push_back(std::move(launched.launch));
    // What can't be written now can't be written by the next launch either.
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

  Json make_record() const {
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
  std::string tag_ = envelope("instances", Status::ok)["id"].get<std::string>().substr(0, 8);
  std::vector<InstanceLaunch> launches_;
  ExitCode code_ = ExitCode::ok;
  bool stopped_ = false;
};

}  // namespace

void print_instances(const InstancesRequest& request) { Instances(request).print(); }

ExitCode run_instances(const InstancesRequest& request, LaunchProgress& progress,
                       const std::function<void(const Json& record)>& report) {
  return Instances(request).run(progress, report);
}

}  // namespace scalemark
