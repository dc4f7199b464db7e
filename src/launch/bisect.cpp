// Halves a range of commits by gates until the commit is left that made training slower.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/text.hpp"
#include "launch/gate_builds.hpp"
#include "record/write.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Gates that halve a range of `commits` commits after the base.
int halvings(std::size_t commits) { return static_cast<int>(std::bit_width(commits - 1)); }

std::string what_is_ahead(std::size_t commits) {
  if (commits == 1) return "1 commit after the base: its gate alone";
  return fmt::format("{} after the base: the gate of the whole range, then at most {}",
                     counted(commits, "commit"),
                     counted(static_cast<std::size_t>(halvings(commits)) + 1, "gate"));
}

std::string named(const Commit& commit) {
  return fmt::format("{} \"{}\"", commit.hash.substr(0, 12), commit.subject);
}

/// The largest slowdown that a verdict has found, of the mean or of a point, percent.
double largest_slowdown(const Verdict& verdict) {
  double largest = verdict.slowdown_percent.value_or(0);
  if (verdict.points)
    for (const record::JudgedPoint& point : *verdict.points)
      if (point.regressed) largest = std::max(largest, point.slowdown_percent);
  return largest;
}

/// The rules by which a commit has the loss of the whole range, or has it not: half of it is
/// between both.
GateDesign rules_for_half(GateDesign design, double loss_percent) {
  design.threshold = std::max(design.threshold, loss_percent / 200);
  design.excluded = std::max(design.threshold, 1e-4);
  design.excluded_point = design.excluded;
  return design;
}

struct GateOutcome {
  ExitCode code = ExitCode::ok;
  Verdict verdict;
};

class Bisection {
 public:
  Bisection(const GatedBuilds& asked, LaunchProgress& progress)
      : asked_(asked), progress_(progress), commits_(commits_between(asked.base, asked.fresh)) {}

  ExitCode run(const std::function<void(const Verdict&)>& report) {
    const std::size_t last = commits_.size() - 1;
    say_progress("bisect: " + what_is_ahead(last));
    const GateOutcome whole = gate(0, last, asked_.design);
    if (whole.code != ExitCode::regression) return conclude(whole, "", report);
    const auto stopped = narrow(rules_for_half(asked_.design, largest_slowdown(whole.verdict)));
    if (stopped) return conclude(*stopped, "", report);
    if (slow_ - fast_ > 1) return conclude(whole, one_of_several(), report);
    const GateOutcome alone = last == 1 ? whole : gate(fast_, slow_, asked_.design);
    if (alone.code == ExitCode::regression) return conclude(alone, found(whole, alone), report);
    if (alone.verdict.status != Status::ok) return conclude(alone, "", report);
    return conclude(whole, not_confirmed(), report);
  }

 private:
  /// Halves the range (fast_, slow_]. Returns the outcome of a gate that was stopped from outside.
  std::optional<GateOutcome> narrow(const GateDesign& design) {
    slow_ = commits_.size() - 1;
    while (const auto middle = next_middle()) {
      const GateOutcome outcome = outcome_of(*middle, design);
      if (outcome.verdict.status == Status::interrupted) return outcome;
      if (outcome.code == ExitCode::ok)
        fast_ = *middle;
      else if (outcome.code == ExitCode::regression)
        slow_ = *middle;
      else
        left_out_.insert(*middle);
      say_progress(fmt::format("bisect: {} {}; {} left", named(commits_[*middle]),
                               outcome.code == ExitCode::ok           ? "is as fast as the base"
                               : outcome.code == ExitCode::regression ? "is slow"
                                                                      : "can't be told: left out",
                               counted(slow_ - fast_, "commit")));
    }
    return std::nullopt;
  }

  /// The commit nearest to the middle of what is left.
  std::optional<std::size_t> next_middle() const {
    std::optional<std::size_t> nearest;
    const auto distance = [&](std::size_t i) {
      const std::size_t twice = 2 * i, middle = fast_ + slow_;
      return twice > middle ? twice - middle : middle - twice;
    };
    for (std::size_t i = fast_ + 1; i < slow_; ++i)
      if (!left_out_.contains(i) && (!nearest || distance(i) < distance(*nearest))) nearest = i;
    return nearest;
  }

  /// The gate of the base against a commit, which may be one that can't be built.
  GateOutcome outcome_of(std::size_t middle, const GateDesign& design) {
    try {
      return gate(0, middle, design);
    } catch (const Error& error) {
      if (error.code() == ExitCode::result) throw;
      warn(error.what());
      return {error.code(), {}};
    }
  }

  GateOutcome gate(std::size_t good, std::size_t other, const GateDesign& design) {
    GatedBuilds pair = asked_;
    pair.base = commits_[good].hash;
    pair.fresh = commits_[other].hash;
    pair.design = design;
    pair.folder /= pair.base.substr(0, 12) + "-" + pair.fresh.substr(0, 12);
    GateOutcome outcome;
    outcome.code =
        gate_builds(pair, progress_, [&](const Verdict& verdict) { outcome.verdict = verdict; });
    return outcome;
  }

  std::string found(const GateOutcome& whole, const GateOutcome& alone) const {
    const double all = *whole.verdict.slowdown_percent, own = *alone.verdict.slowdown_percent;
    std::string text = fmt::format(
        "the first slow commit is {}: {:.1f} % slower than the commit before it, of "
        "{:.1f} % in the whole range",
        named(commits_[slow_]), own, all);
    const auto& interval = alone.verdict.interval_percent;
    if (interval && interval->hi < all) text += "; other commits have a part of it, too";
    return text;
  }

  std::string not_confirmed() const {
    return fmt::format(
        "{} is the first that has half of the loss, but its own gate against the commit before it "
        "does not show it: the loss may be of several commits, or --pairs too few",
        named(commits_[slow_]));
  }

  std::string one_of_several() const {
    std::vector<std::string> names;
    for (std::size_t i = fast_ + 1; i <= slow_; ++i)
      names.push_back(named(commits_[i]) + (left_out_.contains(i) ? " (can't be told)" : ""));
    return fmt::format("the first slow commit is one of these {}: {}", names.size(),
                       fmt::join(names, ", "));
  }

  ExitCode conclude(GateOutcome outcome, const std::string& note,
                    const std::function<void(const Verdict&)>& report) const {
    if (!note.empty()) outcome.verdict.notes.insert(outcome.verdict.notes.begin(), note);
    ResultFile(asked_.folder / "verdict.json").write(verdict_json(outcome.verdict));
    report(outcome.verdict);
    return outcome.code;
  }

  const GatedBuilds& asked_;
  LaunchProgress& progress_;
  std::vector<Commit> commits_;  ///< the base, and those after it
  std::size_t fast_ = 0, slow_ = 0;
  std::set<std::size_t> left_out_;
};

}  // namespace

ExitCode bisect_builds(const GatedBuilds& asked, LaunchProgress& progress,
                       const std::function<void(const Verdict&)>& report) {
  return Bisection(asked, progress).run(report);
}

void print_bisection(const GatedBuilds& asked) {
  const std::vector<Commit> commits = commits_between(asked.base, asked.fresh);
  for (const Commit& commit : commits) print_data(named(commit) + "\n");
  say_progress(what_is_ahead(commits.size() - 1));
}

}  // namespace scalemark
