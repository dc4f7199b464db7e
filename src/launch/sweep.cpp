// See sweep.hpp.
#include "launch/sweep.hpp"

#include <fmt/format.h>

#include "launch/point_launcher.hpp"
#include "result/journal.hpp"
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
    progress.expect(left(journal));
    for (const auto& [index, repeat] : launch_order(plan_)) {
      if (is_done(journal, launcher_.entry_of(index, repeat))) continue;
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
  /// Measured already, by this build; what was interrupted is measured again.
  bool is_done(const Journal& journal, const JournalEntry& launch) const {
    const JournalEntry* entry = journal.find(launch);
    return entry && entry->status != "interrupted" && (entry->status == "ok" || !retry_failed_);
  }

  std::size_t left(const Journal& journal) const {
    std::size_t count = 0;
    for (const auto& [index, repeat] : launch_order(plan_))
      if (!is_done(journal, launcher_.entry_of(index, repeat))) ++count;
    const std::size_t all = plan_.points.size() * static_cast<std::size_t>(plan_.repeats);
    say(fmt::format("{} points x {} repeats in {}{}", plan_.points.size(), plan_.repeats,
                    launcher_.folder().string(),
                    count < all ? fmt::format("; {} launches are done", all - count) : ""));
    return count;
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
    fmt::print("{}\n", launcher.command_line(index, repeat));
  say(fmt::format("{} launches of {} points", plan.points.size() * plan.repeats,
                  plan.points.size()));
}

}  // namespace scalemark
