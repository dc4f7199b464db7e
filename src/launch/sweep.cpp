// See sweep.hpp.
#include "launch/sweep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "config/keys.hpp"
#include "config/names.hpp"
#include "launch/engine_start.hpp"
#include "launch/job.hpp"
#include "launch/placement.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "report/sweep_table.hpp"
#include "result/journal.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

class Sweep {
 public:
  explicit Sweep(const SweepRequest& request)
      : plan_(request.plan),
        folder_(request.output),
        retry_failed_(request.retry_failed),
        environment_(process_environment()),
        launcher_(plan_.launcher == Launcher::automatic ? detect_launcher(environment_)
                                                        : plan_.launcher),
        revision_(build_info().at("revision")) {}

  ExitCode dry_run() const {
    for (const auto& [index, repeat] : launch_order(plan_))
      fmt::print("{}\n", shell_quoted(launch_command(request_of(index, repeat), geteuid() == 0)));
    say(fmt::format("{} launches of {} points", plan_.points.size() * plan_.repeats,
                    plan_.points.size()));
    return ExitCode::ok;
  }

  ExitCode run() {
    const HeldSignals until_the_table_is_printed;
    prepare_folders();
    Journal journal(folder_ / "journal.jsonl");
    SweepProgress progress(left(journal));
    for (const auto& [index, repeat] : launch_order(plan_)) {
      if (is_done(journal, launch_of(index, repeat))) continue;
      progress.start(plan_.points[index].title(), repeat);
      const bool stopped = launch(journal, index, repeat);
      progress.finish(journal.entries().back(), record_of(journal.entries().back()));
      if (stopped) {
        say("interrupted: the same command goes on from here");
        break;
      }
    }
    fmt::print("{}", sweep_table(results_of(journal), plan_.standard));
    return outcome(journal);
  }

 private:
  JournalEntry launch_of(std::size_t index, std::int64_t repeat) const {
    JournalEntry entry;
    entry.point = plan_.points[index].id;
    entry.config_hash = plan_.points[index].config_hash;
    entry.revision = revision_;
    entry.repeat = repeat;
    entry.settings = plan_.points[index].settings;
    return entry;
  }

  fs::path record_path(std::size_t index, std::int64_t repeat) const {
    return folder_ / "runs" / (name_of_launch(index, repeat) + ".json");
  }

  std::string name_of_launch(std::size_t index, std::int64_t repeat) const {
    return fmt::format("{}-{}", plan_.points[index].id.substr(0, 16), repeat);
  }

  LaunchRequest request_of(std::size_t index, std::int64_t repeat) const {
    const SweepPoint& point = plan_.points[index];
    const auto& hostfile = plan_.hostfile ? plan_.hostfile : point.config.hostfile;
    const Resources resources = find_resources(point.config.device, hostfile, environment_);
    const Placement placement =
        place_ranks(point.launch.ranks, resources, point.launch.ranks_per_node);
    LaunchRequest request;
    request.launcher = launcher_;
    request.hydra = built_for_hydra();
    request.ranks = point.launch.ranks;
    request.ranks_per_node = point.launch.ranks_per_node;
    request.cpus_per_rank = point.launch.cpus_per_rank.value_or(placement.cpus_per_rank);
    request.oversubscribe = placement.oversubscribe;
    request.hostfile = hostfile;
    request.environment = point.launch.environment;
    tell_ranks(request, resources.hosts > 1);
    request.program = {own_path().string(), std::string(name_of(plan_.command))};
    request.program.insert(request.program.end(), point.arguments.begin(), point.arguments.end());
    request.program.push_back("--output=" + fs::absolute(record_path(index, repeat)).string());
    return request;
  }

  void prepare_folders() const {
    for (const char* name : {"runs", "logs"}) {
      std::error_code error;
      fs::create_directories(folder_ / name, error);
      if (error)
        throw ResultError(fmt::format("{}: {}; choose another folder with --output",
                                      (folder_ / name).string(), error.message()));
    }
  }

  /// Measured already, by this build; what was interrupted is measured again.
  bool is_done(const Journal& journal, const JournalEntry& launch) const {
    const JournalEntry* entry = journal.find(launch);
    return entry && entry->status != "interrupted" && (entry->status == "ok" || !retry_failed_);
  }

  std::size_t left(const Journal& journal) const {
    std::size_t count = 0;
    for (const auto& [index, repeat] : launch_order(plan_))
      if (!is_done(journal, launch_of(index, repeat))) ++count;
    const std::size_t all = plan_.points.size() * static_cast<std::size_t>(plan_.repeats);
    say(fmt::format("{} points x {} repeats in {}{}", plan_.points.size(), plan_.repeats,
                    folder_.string(),
                    count < all ? fmt::format("; {} launches are done", all - count) : ""));
    return count;
  }

  /// True where the sweep was asked to stop.
  bool launch(Journal& journal, std::size_t index, std::int64_t repeat) const {
    JournalEntry entry = launch_of(index, repeat);
    const fs::path record = record_path(index, repeat);
    std::error_code ignored;
    fs::remove(record, ignored);  // of an attempt that the journal does not count

    entry.started_at = utc_timestamp();
    const double start = steady_seconds();
    const HandoverFolder handover;
    Supervision how;
    how.grace_seconds = plan_.points[index].config.timeout + 10;
    how.limit_seconds = plan_.launch_timeout;
    how.output = (folder_ / "logs" / (name_of_launch(index, repeat) + ".log")).string();
    const JobEnd end = run_job(request_of(index, repeat), handover, how);
    entry.seconds = steady_seconds() - start;
    entry.exit_code = static_cast<int>(end.code);
    entry.status = end.stopped                ? "interrupted"
                   : end.code == ExitCode::ok ? "ok"
                                              : to_string(status_of_exit(entry.exit_code));
    entry.reason = end.reason;
    if (fs::exists(record)) describe(entry, record);
    journal.append(entry);
    return end.stopped;
  }

  /// The ranks' own words beat what the exit code says.
  void describe(JournalEntry& entry, const fs::path& path) const {
    const Json record = read_record(path);
    entry.record = fs::relative(path, folder_).string();
    entry.status = record.at("status");
    if (record.at("reason").is_string()) entry.reason = record["reason"];
  }

  Json record_of(const JournalEntry& entry) const {
    return entry.record.empty() ? Json() : read_record(folder_ / entry.record);
  }

  /// A line a point, of the launches of this build.
  std::vector<SweepResult> results_of(const Journal& journal) const {
    std::vector<SweepResult> results;
    for (std::size_t i = 0; i < plan_.points.size(); ++i) {
      SweepResult result{plan_.points[i].title(), "", {}, 0};
      for (std::int64_t repeat = 1; repeat <= plan_.repeats; ++repeat) {
        const JournalEntry* entry = journal.find(launch_of(i, repeat));
        if (!entry || entry->status == "interrupted") continue;
        if (entry->status != "ok") {
          ++result.failed;
          continue;
        }
        const Json record = record_of(*entry);
        result.unit = record.at("unit");
        result.throughputs.push_back(record.at("throughput").at("mean"));
      }
      results.push_back(std::move(result));
    }
    return results;
  }

  ExitCode outcome(const Journal& journal) const {
    ExitCode code = ExitCode::ok;
    for (const auto& [index, repeat] : launch_order(plan_)) {
      const JournalEntry* entry = journal.find(launch_of(index, repeat));
      if (!entry || entry->status == "interrupted") return ExitCode::failed;
      if (entry->status != "ok")
        code = most_severe(code, entry->exit_code == 0 ? ExitCode::failed
                                                       : static_cast<ExitCode>(entry->exit_code));
    }
    return code;
  }

  const SweepPlan& plan_;
  fs::path folder_;
  bool retry_failed_;
  std::map<std::string, std::string> environment_;
  Launcher launcher_;
  std::string revision_;
};

}  // namespace

ExitCode run_sweep(const SweepRequest& request) {
  Sweep sweep(request);
  return request.dry_run ? sweep.dry_run() : sweep.run();
}

}  // namespace scalemark
