// See sweep.hpp.
#include "launch/sweep.hpp"

#include <fmt/format.h>

#include "launch/point_launcher.hpp"
#include "report/sweep_table.hpp"
#include "result/journal.hpp"

namespace scalemark {
namespace {
void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

class Sweep {
 public:
  explicit Sweep(const SweepRequest& request)
      : plan_(request.plan),
        launcher_(plan_, own_build(), request.output),
        retry_failed_(request.retry_failed) {}

  ExitCode dry_run() const {
    for (const auto& [index, repeat] : launch_order(plan_))
      fmt::print("{}\n", launcher_.command_line(index, repeat));
    say(fmt::format("{} launches of {} points", plan_.points.size() * plan_.repeats,
                    plan_.points.size()));
    return ExitCode::ok;
  }

  ExitCode run() {
    const HeldSignals until_the_table_is_printed;
    launcher_.prepare_folders();
    Journal journal(launcher_.folder() / "journal.jsonl");
    SweepProgress progress(left(journal));
    for (const auto& [index, repeat] : launch_order(plan_)) {
      if (is_done(journal, launcher_.entry_of(index, repeat))) continue;
      progress.start(plan_.points[index].title(), repeat);
      const bool stopped = launcher_.launch(journal, index, repeat);
      progress.finish(journal.entries().back(), launcher_.record_of(journal.entries().back()));
      if (stopped) {
        say("interrupted: the same command goes on from here");
        break;
      }
    }
    fmt::print("{}", sweep_table(results_of(journal), plan_.standard));
    return outcome(journal);
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

  ExitCode outcome(const Journal& journal) const {
    ExitCode code = ExitCode::ok;
    for (const auto& [index, repeat] : launch_order(plan_)) {
      const JournalEntry* entry = journal.find(launcher_.entry_of(index, repeat));
      if (!entry || entry->status == "interrupted") return ExitCode::failed;
      if (entry->status != "ok")
        code = most_severe(code, entry->exit_code == 0 ? ExitCode::failed
                                                       : static_cast<ExitCode>(entry->exit_code));
    }
    return code;
  }

  const SweepPlan& plan_;
  PointLauncher launcher_;
  bool retry_failed_;
};

}  // namespace

ExitCode run_sweep(const SweepRequest& request) {
  Sweep sweep(request);
  return request.dry_run ? sweep.dry_run() : sweep.run();
}

}  // namespace scalemark
