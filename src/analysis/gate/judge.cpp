// See judge.hpp.
#include "analysis/gate/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/point_test.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "error.hpp"
#include "json.hpp"
#include "measure/permutation.hpp"
#include "result/record_schemas.hpp"

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

/// Of a set: repeats that have all points.
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
    if (!made_.decision.can_fail)
      warn(
          fmt::format("this gate cannot fail: {} of each can't show a regression at a level of "
                      "{:g}; measure {} or more",
                      made_.decision.pairs, made_.design.alarm.back().spent,
                      paired() ? least_pairs(made_.design.alarm.back().spent)
                               : least_launches(made_.design.alarm.back().spent)));
    find_interval();
    describe_points();
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
    for (auto& [repeat, work] : base) work_.base.push_back(std::move(work));
    for (auto& [repeat, work] : fresh) work_.fresh.push_back(std::move(work));
  }

  void keep(std::size_t pairs) {
    work_.base.resize(pairs);
    work_.fresh.resize(pairs);
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
    const LogRates logs = log_rates();
    if (std::min(work_.base.size(), work_.fresh.size()) < kLeastRepeats) return;
    const auto found =
        paired() ? sign_flip_interval(mean_of_series(log_ratios(logs)))
                 : permutation_interval(mean_of_series(logs.base), mean_of_series(logs.fresh));
    if (found)
      made_.interval_percent =
          Interval{slowdown_percent(found->interval.hi), slowdown_percent(found->interval.lo)};
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
      JudgedPoint point;
      point.ranks = points_[i].ranks;
      point.settings = points_[i].settings;
      point.unit = points_[i].launches[0].front()->unit;
      point.base_rate = rate_of(work_.base, i);
      point.new_rate = rate_of(work_.fresh, i);
      const LogRates alone{{logs.base[i]}, {logs.fresh[i]}, paired()};
      point.slowdown_percent = slowdown_percent(centre_of(alone));
      point.p = slower_p(alone);
      if (i < decision.point_p.size()) point.p_adjusted = decision.point_p[i];
      point.regressed = decision.verdict == GateVerdict::regressed &&
                        point.p_adjusted <= made_.design.alarm.back().spent;
      point.open = std::ranges::find(decision.open, i) != decision.open.end();
      made_.points.push_back(std::move(point));
    }
  }

  const std::vector<ResultSet>& sets_;
  std::size_t allowed_to_fail_;
  std::vector<MatchedPoint> points_;
  UsedWork work_;
  Judgement made_;
};

}  // namespace

std::string to_string(GateMode mode) {
  switch (mode) {
    case GateMode::sequential:
      return "sequential pairs";
    case GateMode::pairs:
      return "pairs";
    case GateMode::samples:
      break;
  }
  return "samples";
}

Judgement judge(const std::vector<ResultSet>& sets, const Matching& matching, GateMode mode,
                const GateDesign& design, std::size_t allowed_to_fail) {
  return Judge(sets, matching, mode, design, allowed_to_fail).judge();
}

Json design_json(GateMode mode, const GateDesign& design) {
  Json looks = Json::array();
  for (std::size_t i = 0; i < design.alarm.size(); ++i)
    looks.push_back({{"pairs", design.alarm[i].pairs},
                     {"alarm_spent", design.alarm[i].spent},
                     {"pass_spent", design.pass[i].spent}});
  const bool once = mode != GateMode::sequential;
  return {{"mode", to_string(mode)},
          {"alpha", design.alarm.back().spent},
          {"pass_alpha", design.pass.back().spent},
          {"threshold_percent", 100 * design.threshold},
          {"excluded_percent", 100 * design.excluded},
          {"excluded_point_percent", 100 * design.excluded_point},
          {"power", design.power},
          {"looks", once ? Json(nullptr) : looks}};
}

namespace {

Json point_json(const JudgedPoint& point) {
  return {{"ranks", point.ranks},
          {"settings", point.settings},
          {"unit", point.unit},
          {"base_value", point.base_rate},
          {"value", point.new_rate},
          {"slowdown_percent", point.slowdown_percent},
          {"p", point.p},
          {"p_adjusted", point.p_adjusted},
          {"regressed", point.regressed}};
}

Json launches_json(const std::optional<GateLaunches>& launches) {
  if (!launches) return nullptr;
  return {{"launched", launches->launched},
          {"most", launches->most},
          {"seconds", launches->seconds},
          {"alternate", launches->alternate},
          {"stopped", launches->stopped}};
}

void explain_judgement(Json& record) {
  for (const auto& [path, reason] : {
           std::pair{"design.looks", "the sets were there already and were looked at once"},
           {"interval_percent", "too few repeats (5 needed)"},
           {"detectable_percent", "so few repeats can't reach the level, whatever they are"},
           {"repeats_for_pass", "a verdict was reached, or one repeat tells no noise"},
           {"launches", "the sets were there already"},
           {"baseline", "the base is no baseline file"},
       })
    explain_nulls(record, path, reason);
}

Json failed_verdict(const Outcome& outcome, const Json& design, const Json& launches) {
  Json record = blank_record("verdict");
  record.update(envelope("verdict", outcome.status, outcome.reason));
  record["design"] = design;
  record["launches"] = launches;
  explain_nulls(record, "", "the gate came to no verdict: " + outcome.reason);
  return record;
}

}  // namespace

Json make_verdict_record(const VerdictInput& input, const Judgement& judgement) {
  const GateDecision& decision = judgement.decision;
  Json record = envelope("verdict", Status::ok);
  record["verdict"] = to_string(decision.verdict);
  record["exit_code"] = static_cast<int>(exit_code_of(judgement));
  record["design"] = design_json(judgement.mode, judgement.design);
  record["repeats"] = decision.pairs;
  record["slowdown_percent"] = decision.slowdown_percent;
  const auto& interval = judgement.interval_percent;
  record["interval_percent"] = or_null(interval);
  record["p"] = decision.p;
  record["detectable_percent"] = or_null(decision.detectable_percent);
  record["repeats_for_pass"] = decision.verdict == GateVerdict::inconclusive
                                   ? or_null(decision.repeats_for_pass)
                                   : Json(nullptr);
  record["points"] = Json::array();
  for (const JudgedPoint& point : judgement.points) record["points"].push_back(point_json(point));
  record["varied"] = input.varied;
  record["sets"] = Json::array();
  for (const ResultSet& set : input.sets) record["sets"].push_back(set_json(set));
  record["baseline"] = input.baseline;
  record["launches"] = launches_json(input.launches);
  record["notes"] = input.notes;
  record["warnings"] = input.warnings;
  for (const std::string& warning : judgement.warnings) record["warnings"].push_back(warning);
  record["unavailable"] = Json::object();
  explain_judgement(record);
  diagnosis::add_findings(record, input.sets, input.matching);
  return record;
}

Json make_failed_verdict(const Outcome& outcome) {
  return failed_verdict(outcome, nullptr, nullptr);
}

Json make_failed_verdict(const Outcome& outcome, const GateDesign& design,
                         const GateLaunches& launches) {
  return failed_verdict(outcome, design_json(GateMode::sequential, design),
                        launches_json(launches));
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
