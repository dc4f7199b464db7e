// Judges two result sets, and makes the verdict record.
#include "analysis/gate/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/point_test.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "error.hpp"
#include "json.hpp"
#include "measure/clock.hpp"
#include "measure/permutation.hpp"
#include "measure/shift_answer.hpp"
#include "measure/slow_launches.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

using Values = std::vector<double>;

/// [repeat][point] of the repeats that are used.
struct UsedWork {
  std::vector<std::vector<Work>> base, fresh;
};

/// By repeat. Within a launch the rounds of a curve are no repeats of their own.
std::map<std::int64_t, Work> work_of(const std::vector<const MeasuredLaunch*>& launches) {
  std::map<std::int64_t, Work> work;
  for (const Repeat& repeat : repeats_of(launches, "throughput", /*rounds=*/false))
    work[repeat.number] += repeat.work;
  return work;
}

/// Returns the repeats of a set that have all points.
std::map<std::int64_t, std::vector<Work>> complete_repeats(const std::vector<MatchedPoint>& points,
                                                           std::size_t set) {
  std::map<std::int64_t, std::vector<Work>> repeats;
  for (const MatchedPoint& point : points)
    for (const auto& [repeat, work] : work_of(point.launches[set])) repeats[repeat].push_back(work);
  std::erase_if(repeats, [&](const auto& one) { return one.second.size() < points.size(); });
  return repeats;
}

std::string place_of(const MatchedPoint& point) {
  return fmt::format("ranks {}{}", point.ranks, settings_text(point));
}

class Judge {
 public:
  Judge(const std::vector<ResultSet>& sets, const Matching& matching, GateMode mode,
        const GateDesign& design, std::size_t allowed_to_fail)
      : sets_(sets), allowed_to_fail_(allowed_to_fail) {
    made_.mode = mode;
    made_.design = design;
    refuse_failures();
    choose_points(matching);
    choose_repeats();
  }

  Judgement judge() {
    const LogRates logs = log_rates();
    made_.decision = made_.mode == GateMode::sequential ? decide(log_ratios(logs), made_.design)
                                                        : decide_once(logs, made_.design);
    if (made_.mode == GateMode::sequential && made_.decision.pairs > 0) keep(made_.decision.pairs);
    if (sets_[0].failed > allowed_to_fail_) leave_open();
    look_at_order();
    if (!made_.decision.can_fail)
      warn(
          fmt::format("this gate cannot fail: {} of each can't show a regression at a level of "
                      "{:g}; measure {} or more",
                      made_.decision.pairs, made_.design.alarm.back().spent,
                      paired() ? least_pairs(made_.design.alarm.back().spent)
                               : least_launches(made_.design.alarm.back().spent)));
    find_interval();
    describe_points();
    describe_launches();
    return std::move(made_);
  }

 private:
  bool paired() const { return made_.mode != GateMode::samples; }

  void warn(const std::string& text) { made_.warnings.push_back(text); }

  std::string failures(const ResultSet& set) const {
    return fmt::format("{} {} of {} did not end well ({}); {} may by --allow_failed", set.failed,
                       set.failed == 1 ? "launch" : "launches", set.label,
                       fmt::join(set.left_out, ", "), allowed_to_fail_);
  }

  /// A build that crashes now and then is no faster build.
  void refuse_failures() const {
    if (sets_[1].failed > allowed_to_fail_) throw RunError(failures(sets_[1]));
  }

  /// What is left of a base that failed may be what was fast.
  void leave_open() {
    made_.decision.verdict = GateVerdict::inconclusive;
    warn(failures(sets_[0]) + ": measure the base again");
  }

  void choose_points(const Matching& matching) {
    for (const ResultSet& set : sets_) refuse_pooled_builds(set);
    for (const MatchedPoint& point : matching.points) {
      if (point.launches[0].empty()) {
        warn(fmt::format("{} is in {} only, and was not judged", place_of(point), sets_[1].label));
        continue;
      }
      if (point.launches[1].empty())
        throw ConfigError(fmt::format(
            "{} has no launch with {}, which {} has: what isn't measured can't be judged; measure "
            "it, or leave it out of both",
            sets_[1].label, place_of(point), sets_[0].label));
      common_unit(point);
      points_.push_back(point);
    }
  }

  void refuse_pooled_builds(const ResultSet& set) const {
    std::set<std::string> revisions;
    for (const MeasuredLaunch& launch : set.launches) revisions.insert(launch.revision);
    if (revisions.size() > 1)
      throw ConfigError(
          fmt::format("{} holds launches of several builds ({}); a gate judges one against "
                      "another: give each a folder of its own",
                      set.path, fmt::join(revisions, ", ")));
  }

  void choose_repeats() {
    auto base = complete_repeats(points_, 0), fresh = complete_repeats(points_, 1);
    std::size_t all = 0;
    for (std::size_t set = 0; set < 2; ++set) {
      std::set<std::int64_t> repeats;
      for (const MatchedPoint& point : points_)
        for (const auto& [repeat, work] : work_of(point.launches[set])) repeats.insert(repeat);
      all += repeats.size();
    }
    if (paired()) {
      std::erase_if(base, [&](const auto& one) { return !fresh.contains(one.first); });
      std::erase_if(fresh, [&](const auto& one) { return !base.contains(one.first); });
    }
    if (base.empty() || fresh.empty())
      throw ConfigError(fmt::format("{} and {} have no repeat that went through all {} points",
                                    sets_[0].label, sets_[1].label, points_.size()));
    const std::size_t used = base.size() + fresh.size();
    if (used < all && made_.mode != GateMode::sequential)
      warn(fmt::format("{} of {} repeats lack a point{} and were left out", all - used, all,
                       paired() ? " or a partner" : ""));
    find_starts(base, starts_.base, 0);
    find_starts(fresh, starts_.fresh, 1);
    for (auto& [repeat, work] : base) work_.base.push_back(std::move(work));
    for (auto& [repeat, work] : fresh) work_.fresh.push_back(std::move(work));
  }

  /// When the repeats that are used began, in seconds: their first launch of any point.
  void find_starts(const std::map<std::int64_t, std::vector<Work>>& repeats, Values& starts,
                   std::size_t set) const {
    std::map<std::int64_t, double> first;
    for (const MatchedPoint& point : points_)
      for (const Repeat& repeat : repeats_of(point.launches[set], "throughput", /*rounds=*/false)) {
        const double seconds = utc_seconds(repeat.launch->started_at);
        const auto [known, is_new] = first.try_emplace(repeat.number, seconds);
        if (!is_new) known->second = std::min(known->second, seconds);
      }
    for (const auto& [repeat, work] : repeats) starts.push_back(first.at(repeat));
  }

  /// What the order of the launches or a drift may have made is no verdict on the build.
  void look_at_order() {
    const LogRates mean = mean_point(log_rates());
    if (mean.base.front().empty()) return;
    const OrderFindings found = scalemark::look_at_order(
        {starts_.base, starts_.fresh, mean.base.front(), mean.fresh.front(), paired()},
        std::log1p(-made_.decision.slowdown_percent / 100), made_.design.threshold, sets_[0].label,
        sets_[1].label);
    for (const std::string& warning : found.warnings) warn(warning);
    if (!found.drift.empty()) warn(found.drift);
    if (found.confounded && made_.decision.verdict != GateVerdict::more_pairs)
      made_.decision.verdict = GateVerdict::inconclusive;
  }

  void keep(std::size_t pairs) {
    work_.base.resize(pairs);
    work_.fresh.resize(pairs);
    starts_.base.resize(pairs);
    starts_.fresh.resize(pairs);
  }

  /// [point][repeat].
  static Series logs_of(const std::vector<std::vector<Work>>& repeats) {
    Series logs(repeats.empty() ? 0 : repeats.front().size());
    for (const auto& repeat : repeats)
      for (std::size_t point = 0; point < logs.size(); ++point)
        logs[point].push_back(std::log(repeat[point].rate()));
    return logs;
  }

  LogRates log_rates() const { return {logs_of(work_.base), logs_of(work_.fresh), paired()}; }

  void find_interval() {
    if (std::min(work_.base.size(), work_.fresh.size()) < kLeastRepeats) return;
    const ShiftAnswer answer = answer_of(mean_point(log_rates()), made_.design);
    if (const auto& found = answer.interval)
      made_.interval_percent =
          Interval{slowdown_percent(found->interval.hi), slowdown_percent(found->interval.lo)};
    if (answer.refuted_by_mean())
      warn(
          fmt::format("the mean of all launches is {:.1f} % slower, beyond the interval of the "
                      "robust mean, which counts launches that lie far off less: nothing is "
                      "excluded",
                      slowdown_percent(answer.bare)));
    if (answer.spreads && answer.spreads->differ())
      warn(
          fmt::format("the spreads differ: that of {} is {:.1f} times that of {} (p = {:.4f}); "
                      "tests and interval allow for it",
                      sets_[1].label, answer.spreads->ratio, sets_[0].label, answer.spreads->p));
  }

  static std::string numbers_of(const std::vector<std::size_t>& launches) {
    std::vector<std::size_t> from_one;
    for (const std::size_t index : launches) from_one.push_back(index + 1);
    return fmt::format("{}", fmt::join(from_one, ", "));
  }

  /// Names the launches of the new set that lie far below the others of their point.
  void describe_launches() {
    const LogRates logs = log_rates();
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const SlowLaunches slow = slow_of(one_point(logs, i), made_.design);
      if (slow.fresh.empty()) continue;
      const bool more =
          std::ranges::find(made_.decision.slow_points, i) != made_.decision.slow_points.end();
      warn(
          fmt::format("{}: {} of {} {} of {} lie more than {:.1f} % below the others ({}), of {} "
                      "{}{}",
                      place_of(points_[i]), slow.fresh.size(), logs.fresh[i].size(),
                      paired() ? "pairs" : "launches", sets_[1].label, slowdown_percent(-slow.cut),
                      numbers_of(slow.fresh), sets_[0].label, slow.base.size(),
                      more ? fmt::format(": a larger share (p = {:.4f})", slow.p) : ""));
    }
  }

  static double rate_of(const std::vector<std::vector<Work>>& repeats, std::size_t point) {
    Work all;
    for (const auto& repeat : repeats) all += repeat[point];
    return all.rate();
  }

  void describe_points() {
    const LogRates logs = log_rates();
    const GateDecision& decision = made_.decision;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      record::JudgedPoint point;
      point.ranks = points_[i].ranks;
      point.settings = points_[i].settings;
      point.unit = points_[i].launches[0].front()->unit;
      point.base_value = rate_of(work_.base, i);
      point.value = rate_of(work_.fresh, i);
      point.slowdown_percent = slowdown_percent(centre_of(one_point(logs, i)));
      point.p = decision.own_p.at(i);
      point.p_adjusted = decision.point_p.at(i);
      point.regressed = decision.verdict == GateVerdict::regressed &&
                        *point.p_adjusted <= made_.design.alarm.back().spent;
      made_.points.push_back(std::move(point));
    }
  }

  const std::vector<ResultSet>& sets_;
  std::size_t allowed_to_fail_;
  std::vector<MatchedPoint> points_;
  UsedWork work_;
  struct {
    Values base, fresh;  ///< in seconds, of the repeats of work_
  } starts_;
  Judgement made_;
};

}  // namespace

Judgement judge(const std::vector<ResultSet>& sets, const Matching& matching, GateMode mode,
                const GateDesign& design, std::size_t allowed_to_fail) {
  return Judge(sets, matching, mode, design, allowed_to_fail).judge();
}

record::GateRules rules_of(GateMode mode, const GateDesign& design) {
  record::GateRules rules{mode,
                          design.alarm.back().spent,
                          design.pass.back().spent,
                          100 * design.threshold,
                          100 * design.excluded,
                          100 * design.excluded_point,
                          design.power,
                          Unknown{"the sets were there already and were looked at once"}};
  if (mode != GateMode::sequential) return rules;
  auto& looks = rules.looks.emplace();
  for (std::size_t i = 0; i < design.alarm.size(); ++i)
    looks.push_back({design.alarm[i].pairs, design.alarm[i].spent, design.pass[i].spent});
  return rules;
}

namespace {

Known<std::size_t> repeats_for_pass(const GateDecision& decision) {
  const Unknown none{"a verdict was reached, or one repeat tells no noise"};
  if (decision.verdict != GateVerdict::inconclusive) return none;
  return {decision.repeats_for_pass, none.why};
}

}  // namespace

Verdict make_verdict(const VerdictInput& input, const Judgement& judgement) {
  const GateDecision& decision = judgement.decision;
  Verdict made;
  set_envelope(made, "verdict", {});
  made.verdict = decision.verdict;
  made.exit_code = static_cast<int>(exit_code_of(judgement));
  made.design = rules_of(judgement.mode, judgement.design);
  made.repeats = decision.pairs;
  made.slowdown_percent = decision.slowdown_percent;
  made.interval_percent = {judgement.interval_percent, "too few repeats (5 needed)"};
  made.p = decision.p;
  made.detectable_percent = {decision.detectable_percent,
                             "so few repeats can't reach the level, whatever they are"};
  made.repeats_for_pass = repeats_for_pass(decision);
  made.points = judgement.points;
  made.varied = input.varied;
  made.sets = compared_sets(input.sets);
  made.baseline = Unknown{"the base is no baseline file"};
  if (!input.baseline.is_null())
    made.baseline = part_from<record::BaselineReference>(input.baseline);
  made.launches = {input.launches, "the sets were there already"};
  made.notes = input.notes;
  made.warnings = input.warnings;
  made.warnings.insert(made.warnings.end(), judgement.warnings.begin(), judgement.warnings.end());
  std::ranges::move(divergence_warnings(input.sets), std::back_inserter(made.warnings));
  made.findings = diagnosis::written_findings(verdict_json(made), input.sets, input.matching);
  return made;
}

Verdict make_failed_verdict(const Outcome& outcome) {
  Verdict made;
  set_envelope(made, "verdict", outcome);
  return made;
}

Verdict make_failed_verdict(const Outcome& outcome, const GateDesign& design,
                            const record::GateLaunches& launches) {
  Verdict made = make_failed_verdict(outcome);
  made.design = rules_of(GateMode::sequential, design);
  made.launches = launches;
  return made;
}

Json verdict_json(const Verdict& verdict) {
  return record_json(verdict, "the gate came to no verdict: " + verdict.reason);
}

ExitCode exit_code_of(const Judgement& judgement) {
  switch (judgement.decision.verdict) {
    case GateVerdict::regressed:
      return ExitCode::regression;
    case GateVerdict::pass:
      return ExitCode::ok;
    default:
      return ExitCode::inconclusive;
  }
}

}  // namespace scalemark
