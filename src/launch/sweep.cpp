// See sweep.hpp.
#include "launch/sweep.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "launch/point_launcher.hpp"
#include "result/journal.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const std::filesystem::path& folder, bool retry_failed)
      : plan_(plan), launcher_(plan_, own_build(), folder), retry_failed_(retry_failed) {}

  SweepEnd run(LaunchProgress& progress) {
    launcher_.prepare_folders();
    Journal journal(launcher_.folder() / "journal.jsonl");
    const auto left = launches_left(journal);
    progress.expect(left.size());
    for (const auto& [index, repeat] : left) {
      progress.start(plan_.points[index].title(), repeat);
      const bool stopped = launcher_.launch(journal, index, repeat);
      const JournalEntry& entry = journal.entries().back();
      progress.finish(entry.seconds, outcome_of(entry, launcher_.record_of(entry)));
      if (stopped) {
        say("interrupted: the same command goes on from here");
        break;
      }
    }
    return {worst(journal), results_of(journal)};
  }

 private:
  /// Measured already, by this build; what was interrupted is measured again, and so is what has
  /// lost its record.
  bool is_done(const Journal& journal, const JournalEntry& launch) const {
    const JournalEntry* entry = journal.find(launch);
    if (!entry || entry->status == "interrupted") return false;
    if (entry->status != "ok") return !retry_failed_;
    return std::filesystem::exists(launcher_.folder() / entry->record);
  }

  /// In their order. Levels that are compared are launched side by side: where one of a group is to
  /// be launched, all are.
  std::vector<std::pair<std::size_t, std::int64_t>> launches_left(const Journal& journal) const {
    const auto order = launch_order(plan_);
    std::set<std::pair<std::size_t, std::int64_t>> groups;
    for (const auto& [index, repeat] : order)
      if (!is_done(journal, launcher_.entry_of(index, repeat)))
        groups.emplace(plan_.points[index].group, repeat);
    std::vector<std::pair<std::size_t, std::int64_t>> left;
    for (const auto& [index, repeat] : order)
      if (groups.contains({plan_.points[index].group, repeat})) left.emplace_back(index, repeat);
    say(fmt::format("{} points x {} repeats in {}{}", plan_.points.size(), plan_.repeats,
                    launcher_.folder().string(),
                    left.size() < order.size()
                        ? fmt::format("; {} launches are done", order.size() - left.size())
                        : ""));
    return left;
  }

  /// A line a point, of the launches of this build.
  std::vector<SweepResult> results_of(const Journal& journal) const {
    std::vector<SweepResult> results;
    for (std::size_t i = 0; i < plan_.points.size(); ++i) {
      SweepResult result{plan_.points[i].title(), "", {}, 0};
      for (std::int64_t repeat = 1; repeat <= plan_.repeats; ++repeat) {
        const JournalEntry* entry = journal.find(launcher_.entry_of(i, repeat));
        if (!entry || entry->status == "interrupted") continue;
        if (entry->status != "ok") {
          ++result.failed;
          continue;
        }
        const Json record = launcher_.record_of(*entry);
        result.unit = record.at("unit");
        result.throughputs.push_back(record.at("throughput").at("mean"));
      }
      results.push_back(std::move(result));
    }
    return results;
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
  bool retry_failed_;
};

}  // namespace

SweepEnd run_sweep(const SweepPlan& plan, const std::filesystem::path& folder, bool retry_failed,
                   LaunchProgress& progress) {
  return Sweep(plan, folder, retry_failed).run(progress);
}

void print_sweep(const SweepPlan& plan, const std::filesystem::path& folder) {
  const PointLauncher launcher(plan, own_build(), folder);
  for (const auto& [index, repeat] : launch_order(plan))
    for (const std::string& line : launcher.command_lines(index, repeat)) put(line + "\n");
  say(fmt::format("{} launches of {} points", plan.points.size() * plan.repeats,
                  plan.points.size()));
}

}  // namespace scalemark
