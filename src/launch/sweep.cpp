// Runs the launches of a sweep that are left, and collects their results.
#include "launch/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "config/shown_variables.hpp"
#include "config/text.hpp"
#include "launch/point_launcher.hpp"
#include "result/sweep_folder.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostNamed = 5;

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const std::filesystem::path& folder, const LaunchedAgain& again)
      : plan_(plan), launcher_(plan_, own_build(), folder), again_(again) {}

  SweepEnd run(LaunchProgress& progress) {
    launcher_.prepare_folders();
    Journal journal(journal_of(launcher_.folder()));
    launcher_.refuse_other_variables(journal);
    write_planned(launcher_.folder(), planned());
    find_lost(journal);
    const auto left = launches_left(journal);
    progress.expect(left.size());
    bool stopped = false;
    for (const auto& [index, repeat] : left) {
      progress.start(plan_.points[index].title(), repeat);
      stopped = launcher_.launch(journal, index, repeat);
      const JournalEntry& entry = journal.entries().back();
      progress.finish(entry.seconds, outcome_of(entry, launcher_.record_of(entry)));
      refuse_other_ground(journal);
      if (stopped) {
        say_progress("interrupted: the same command goes on from here");
        break;
      }
    }
    return {worst(journal), results_of(journal), stopped};
  }

 private:
  /// Where a launch was measured.
  struct Ground {
    std::string record;
    Json facts;  ///< of the machine, and the transport
  };

  /// Returns the ground of the first launch of the same point that counts, and its own.
  std::pair<Ground, Ground> grounds_of(const JournalEntry& entry) {
    const MeasuredLaunch launch =
        measured_launches(launcher_.record_of(entry), entry.record).front();
    Ground own{entry.record, launch.machine};
    const auto transport = launch.keys.find("transport");
    own.facts["transport"] = transport == launch.keys.end() ? Json() : transport->second;
    return {grounds_.try_emplace(entry.point, own).first->second, own};
  }

  /// Throws ConfigError where the last launch has come out on another machine than those of its
  /// point that are kept, or on another transport.
  void refuse_other_ground(Journal& journal) {
    const JournalEntry entry = journal.entries().back();
    if (entry.status != "ok") return;
    const auto [kept, own] = grounds_of(entry);
    for (const auto& [name, before] : kept.facts.items()) {
      const Json now = own.facts.value(name, Json());
      if (now == before) continue;
      const std::string what = fmt::format("it has {} {}, where {} has {}", name, now.dump(),
                                           kept.record, before.dump());
      PointLauncher::revoke(journal, entry, what);
      throw ConfigError(fmt::format(
          "{}: {}: their figures do not belong together; go on where the sweep was begun, or "
          "choose another folder with --output",
          (launcher_.folder() / own.record).string(), what));
    }
  }

  PlannedLaunches planned() const {
    PlannedLaunches all{launcher_.build().revision, plan_.repeats, {}};
    for (const SweepPoint& point : plan_.points)
      all.points.push_back({point.id, json_without_credentials(point.settings)});
    return all;
  }

  /// Finds measurements that have vanished. The user must put them back or ask for them again; they
  /// are never repeated silently.
  void find_lost(const Journal& journal) {
    std::vector<std::string> names;
    for (const auto& launch : launch_order(plan_)) {
      const JournalEntry* entry = journal.find(launcher_.entry_of(launch.first, launch.second));
      if (!entry || entry->status != "ok") continue;
      try {
        grounds_of(*entry);
      } catch (const Error&) {
        lost_.insert(launch);
        if (names.size() < kMostNamed) names.push_back(quote(entry->record));
      }
    }
    if (lost_.empty()) return;
    const std::string what = fmt::format(
        "{} done, but without a record that can be read: {}{}",
        lost_.size() == 1 ? "1 launch is" : fmt::format("{} launches are", lost_.size()),
        fmt::join(names, ", "),
        lost_.size() > names.size() ? fmt::format(" and {} more", lost_.size() - names.size())
                                    : "");
    if (!again_.lost)
      throw ResultError(
          fmt::format("{}: {}; put the records back, or measure these launches again with --repair",
                      (launcher_.folder() / "journal.jsonl").string(), what));
    say_progress(what + "; measured again");
  }

  /// Returns whether a launch has been measured by this build. A launch that was interrupted is
  /// measured again.
  bool is_done(const Journal& journal, std::size_t point, std::int64_t repeat) const {
    const JournalEntry* entry = journal.find(launcher_.entry_of(point, repeat));
    if (!entry || entry->status == "interrupted") return false;
    return entry->status == "ok" ? !lost_.contains({point, repeat}) : !again_.failed;
  }

  /// Returns the launches that are left, in their order. Levels that are compared are launched side
  /// by side: where one of a group is launched, all are.
  std::vector<std::pair<std::size_t, std::int64_t>> launches_left(const Journal& journal) const {
    const auto order = launch_order(plan_);
    std::set<std::pair<std::size_t, std::int64_t>> groups;
    for (const auto& [index, repeat] : order)
      if (!is_done(journal, index, repeat)) groups.emplace(plan_.points[index].group, repeat);
    std::vector<std::pair<std::size_t, std::int64_t>> left;
    for (const auto& [index, repeat] : order)
      if (groups.contains({plan_.points[index].group, repeat})) left.emplace_back(index, repeat);
    const std::size_t done = order.size() - left.size();
    say_progress(fmt::format(
        "{} x {} in {}{}", counted(plan_.points.size(), "point"),
        counted(static_cast<std::size_t>(plan_.repeats), "repeat"), launcher_.folder().string(),
        done > 0 ? fmt::format("; {} {} done", counted(done, "launch"), done == 1 ? "is" : "are")
                 : ""));
    return left;
  }

  /// Returns a result for each point, from the launches of this build.
  std::vector<SweepResult> results_of(const Journal& journal) const {
    std::vector<SweepResult> results;
    for (std::size_t i = 0; i < plan_.points.size(); ++i) {
      SweepResult result{plan_.points[i].title(), {}, 0};
      for (std::int64_t repeat = 1; repeat <= plan_.repeats; ++repeat) {
        const JournalEntry* entry = journal.find(launcher_.entry_of(i, repeat));
        if (!entry || entry->status == "interrupted") continue;
        if (entry->status != "ok") {
          ++result.failed;
          continue;
        }
        result.launches.push_back(work_of(*entry, repeat));
      }
      results.push_back(std::move(result));
    }
    return results;
  }

  MeasuredLaunch work_of(const JournalEntry& entry, std::int64_t repeat) const {
    const auto whole = measured_launches(launcher_.record_of(entry), entry.record).front();
    MeasuredLaunch launch;
    launch.path = entry.record;
    launch.unit = whole.unit;
    launch.ranks = whole.ranks;
    launch.repeats = whole.repeats;
    launch.sweep = launcher_.folder().string();
    launch.repeat = repeat;
    return launch;
  }

  ExitCode worst(const Journal& journal) const {
    ExitCode code = ExitCode::ok;
    for (const auto& [index, repeat] : launch_order(plan_)) {
      const JournalEntry* entry = journal.find(launcher_.entry_of(index, repeat));
      if (!entry || entry->status == "interrupted") return ExitCode::failed;
      if (entry->status != "ok") code = most_severe(code, entry->failure());
    }
    return code;
  }

  const SweepPlan& plan_;
  PointLauncher launcher_;
  LaunchedAgain again_;
  std::set<std::pair<std::size_t, std::int64_t>> lost_;  // point and repeat
  std::map<std::string, Ground> grounds_;                // by point
};

}  // namespace

SweepEnd run_sweep(const SweepPlan& plan, const std::filesystem::path& folder,
                   const LaunchedAgain& again, LaunchProgress& progress) {
  return Sweep(plan, folder, again).run(progress);
}

void print_sweep(const SweepPlan& plan, const std::filesystem::path& folder) {
  const PointLauncher launcher(plan, own_build(), folder);
  for (const auto& [index, repeat] : launch_order(plan))
    for (const std::string& line : launcher.command_lines(index, repeat)) print_data(line + "\n");
  say_progress(fmt::format("{} of {}", counted(plan.points.size() * plan.repeats, "launch"),
                           counted(plan.points.size(), "point")));
}

}  // namespace scalemark
