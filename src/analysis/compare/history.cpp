// Looks for changes in a row of result sets, and judges the newest one.
#include "analysis/compare/history.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "analysis/compare/compare.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "error.hpp"
#include "measure/significance.hpp"
#include "measure/spreads.hpp"
#include "measure/statistics.hpp"
#include "measure/trend.hpp"
#include "record/write.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

/// Sizes of rows that SetsNeeded is looked for in.
constexpr std::size_t kRowSizes[] = {6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 30, 40};
/// Of log rates: below lies rounding.
constexpr double kLeastVariance = 1e-18;

/// Of the search for single sets far off their level: the level of each of them.
constexpr double kOddLevel = 0.01;

/// Where the levels before the last value begin, the first one included.
std::vector<std::size_t> level_starts(const RowFindings& found) {
  std::vector<std::size_t> starts{0};
  for (const LevelChange& change : found.changes) {
    starts.push_back(change.first);
    if (change.goes_back) starts.push_back(change.end);
  }
  return starts;
}

/// Distances of the values from their levels, of those that are used.
class Residuals {
 public:
  Residuals(std::span<const double> values, const std::vector<std::size_t>& starts)
      : values_(values.begin(), values.end()), used_(values.size(), true), starts_(starts) {
    starts_.push_back(values_.size());
    distances_.resize(values_.size());
    means_.resize(starts.size());
    counts_.resize(starts.size());
    for (std::size_t part = 0; part < means_.size(); ++part) refer(part);
  }

  double squares() const {
    double sum = 0;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (used_[i]) sum += distances_[i] * distances_[i];
    return sum;
  }
  double freedom() const {
    return static_cast<double>(std::ranges::count(used_, true)) -
           static_cast<double>(means_.size());
  }
  double last_mean() const { return means_.back(); }
  std::size_t in_last() const { return counts_.back(); }

  /// Leaves out, one after the other, values that lie alone farther off than noise of all others
  /// makes any of them, by Student's t of a value that is not among those that it is held against
  /// (Grubbs 1950). Returns their indices.
  std::vector<std::size_t> leave_out_odd(double least_variance) {
    std::vector<std::size_t> odd;
    while (odd.size() < values_.size() / 5) {
      const auto farthest = farthest_of();
      if (!farthest || odd_p(*farthest, least_variance) > kOddLevel) break;
      used_[*farthest] = false;
      refer(part_of(*farthest));
      odd.push_back(*farthest);
    }
    std::ranges::sort(odd);
    return odd;
  }

 private:
  std::size_t part_of(std::size_t i) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(starts_, i) - starts_.begin()) - 1;
  }

  void refer(std::size_t part) {
    std::vector<double> kept;
    for (std::size_t i = starts_[part]; i < starts_[part + 1]; ++i)
      if (used_[i]) kept.push_back(values_[i]);
    means_[part] = mean(kept);
    counts_[part] = kept.size();
    for (std::size_t i = starts_[part]; i < starts_[part + 1]; ++i)
      distances_[i] = values_[i] - means_[part];
  }

  /// Of the values of levels of which two others are left.
  std::optional<std::size_t> farthest_of() const {
    std::optional<std::size_t> farthest;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!used_[i] || (farthest && std::abs(distances_[i]) <= std::abs(distances_[*farthest])))
        continue;
      if (counts_[part_of(i)] > 2) farthest = i;
    }
    return farthest;
  }

  double odd_p(std::size_t i, double least_variance) const {
    const auto n = static_cast<double>(counts_[part_of(i)]);
    const double share = 1 - 1 / n, left = freedom() - 1;
    if (left < 1) return 1;
    const double square = distances_[i] * distances_[i] / share;
    const double variance = std::max((squares() - square) / left, least_variance);
    const StudentTest test{std::sqrt(square), std::sqrt(variance), left};
    return 2 * static_cast<double>(values_.size()) * test.greater_p(0);
  }

  std::vector<double> values_, distances_, means_;
  std::vector<bool> used_;
  std::vector<std::size_t> starts_, counts_;  ///< of the levels: where they begin; values used
};

/// The values less a drift, which is 0 at the last of them.
std::vector<double> without_drift(std::vector<double> values, const RowDrift& drift) {
  const auto steps = static_cast<double>(values.size() - 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] += drift.difference * (1 - static_cast<double>(i) / steps);
  return values;
}

}  // namespace

double Continued::slower_p() const { return StudentTest{-difference, error, freedom}.greater_p(0); }

double Continued::excluded_p(double slowdown) const {
  return StudentTest{difference, error, freedom}.greater_p(std::log1p(-slowdown));
}

std::optional<Continued> continue_row(const LevelRow& row, double alpha, ChangeTest& test) {
  if (row.values.size() < 4) return std::nullopt;
  std::vector<double> before(row.values.begin(), row.values.end() - 1);
  const double noise = mean(std::span(row.noise).first(before.size()));
  const double least_variance = std::max(noise, kLeastVariance);
  const RowFindings found = find_changes(before, alpha, least_variance, test);
  Continued made;
  made.drift = found.drift.has_value();
  double next = 0;  // what the drift adds to the level by the last value
  if (found.drift) {
    next = found.drift->difference / static_cast<double>(before.size() - 1);
    before = without_drift(std::move(before), *found.drift);
  }
  const std::vector<std::size_t> starts = level_starts(found);
  Residuals residuals(before, starts);
  made.odd = residuals.leave_out_odd(least_variance);
  made.freedom = residuals.freedom() - (made.drift ? 1 : 0);
  if (made.freedom < 1) return std::nullopt;
  const double variance = std::max(residuals.squares() / made.freedom, least_variance);
  const double own = variance + std::max(0., row.noise.back() - noise);
  made.first = starts.back();
  made.difference = row.values.back() - residuals.last_mean() - next;
  made.median_difference = row.median - residuals.last_mean() - next;
  made.deviation = std::sqrt(variance);
  made.error = std::sqrt(own + variance / static_cast<double>(residuals.in_last()));
  return made;
}

namespace {

using Launches = std::vector<const MeasuredLaunch*>;

/// Rounds within a launch are one value.
std::vector<double> log_rates(const Launches& launches) {
  std::vector<double> logs;
  for (const MeasuredLaunch* launch : launches) {
    std::vector<double> rounds;
    for (const Work& work : launch->repeats) rounds.push_back(std::log(work.rate()));
    logs.push_back(mean(rounds));
  }
  return logs;
}

std::string name_of(const MatchedPoint& point) {
  return fmt::format("ranks {}{}", point.ranks, settings_text(point));
}

/// A point over the sets that have it.
struct PointRow : LevelRow {
  std::size_t point = 0;
  std::vector<std::size_t> sets;
  bool tells_noise = false;
};

PointRow row_of(const MatchedPoint& point, std::size_t index) {
  PointRow row;
  row.point = index;
  double squares = 0, freedom = 0;
  for (std::size_t set = 0; set < point.launches.size(); ++set) {
    if (point.launches[set].empty()) continue;
    const std::vector<double> logs = log_rates(point.launches[set]);
    const auto n = static_cast<double>(logs.size());
    row.sets.push_back(set);
    row.values.push_back(mean(logs));
    row.noise.push_back(1 / n);
    row.median = median(logs);
    squares += (n - 1) * std::pow(standard_deviation(logs), 2);
    freedom += n - 1;
  }
  row.tells_noise = freedom > 0;
  for (double& noise : row.noise) noise *= row.tells_noise ? squares / freedom : 0;
  return row;
}

/// The mean over rows that all sets have.
LevelRow mean_row(const std::vector<const PointRow*>& rows) {
  LevelRow made;
  const auto count = static_cast<double>(rows.size());
  for (std::size_t set = 0; set < rows.front()->values.size(); ++set) {
    double value = 0, noise = 0;
    for (const PointRow* row : rows) {
      value += row->values[set] / count;
      noise += row->noise[set] / (count * count);
    }
    made.values.push_back(value);
    made.noise.push_back(noise);
  }
  for (const PointRow* row : rows) made.median += row->median / count;
  return made;
}

double percent_of(double difference) { return 100 * std::expm1(difference); }
double slowdown_of(double difference) { return 0 - percent_of(difference); }

/// "c3, c5 and 4 more".
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 6;
  if (names.size() <= kMost + 1) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(std::span(names).first(kMost), ", "),
                     names.size() - kMost);
}

class HistoryFinder {
 public:
  HistoryFinder(const std::vector<ResultSet>& sets, const Matching& matching,
                const HistoryRules& rules, ChangeTest& test)
      : sets_(sets), matching_(matching), rules_(rules), test_(test) {
    for (std::size_t i = 0; i < matching.points.size(); ++i) {
      common_unit(matching.points[i]);
      rows_.push_back(row_of(matching.points[i], i));
    }
    for (const PointRow& row : rows_)
      if (row.sets.size() == sets.size()) common_.push_back(&row);
    if (common_.empty()) throw ConfigError("--history: no point is common to all sets");
    mean_ = mean_row(common_);
  }

  History find() {
    describe_levels();
    find_steps();
    judge_newest();
    describe_noise();
    name_points();
    name_failures();
    name_hosts();
    return std::move(made_);
  }

 private:
  void warn(std::string text) { made_.warnings.push_back(std::move(text)); }

  void describe_levels() {
    made_.points = common_.size();
    made_.levels = mean_.values;
    for (const double level : mean_.values)
      made_.rates.push_back(std::exp(level - mean_.values.front()));
    const bool told =
        std::ranges::all_of(common_, [](const PointRow* row) { return row->tells_noise; });
    if (told) made_.launch_noise = std::sqrt(mean(mean_.noise));
  }

  /// The mean of several points has half of the level, and all of them together the other half.
  double mean_level() const { return rows_.size() > 1 ? rules_.alpha / 2 : rules_.alpha; }
  double point_level() const { return rules_.alpha / 2 / static_cast<double>(rows_.size()); }

  static double least_variance_of(const LevelRow& row) {
    return std::max(mean(row.noise), kLeastVariance);
  }

  void find_steps() {
    made_.found = find_changes(mean_.values, mean_level(), least_variance_of(mean_), test_);
    if (rows_.size() == 1) return;
    for (const PointRow& row : rows_) {
      const RowFindings found =
          find_changes(row.values, point_level(), least_variance_of(row), test_);
      for (const LevelChange& change : found.changes)
        if (!shown_by_mean(row, change))
          made_.point_changes.push_back({row.point, row.sets, change});
      if (found.drift && !made_.found.drift)
        warn(fmt::format("{}: drift of {:+.1f} % from the first set to the last (p = {:.4f})",
                         name_of(matching_.points[row.point]), percent_of(found.drift->difference),
                         found.drift->p));
    }
  }

  /// A change of all points alike is told once.
  bool shown_by_mean(const PointRow& row, const LevelChange& change) const {
    return std::ranges::any_of(made_.found.changes, [&](const LevelChange& of_mean) {
      const auto at = static_cast<double>(row.sets[change.first]);
      return std::abs(at - static_cast<double>(of_mean.first)) <= 1 &&
             change.difference * of_mean.difference > 0 &&
             std::abs(change.difference) < 2 * std::abs(of_mean.difference);
    });
  }

  // The newest set: the mean and all of its points against the levels that they would continue, by
  // the union of both as in a gate (measure/joint_permutation.hpp), with Student's t, since no
  // permutation of one set among a few reaches a level of 1 %.

  struct JudgedRow {
    const PointRow* row;
    Continued against;
  };

  void judge_newest() {
    const auto newest = sets_.size() - 1;
    const std::optional<Continued> on_mean = continue_row(mean_, mean_level(), test_);
    if (!on_mean) return leave_open("too few sets of one level to compare it with");
    mean_against_ = *on_mean;
    for (const PointRow& row : rows_) {
      if (row.sets.back() != newest) continue;
      if (const auto against = continue_row(row, point_level(), test_))
        judged_.push_back({&row, *against});
      else
        warn(fmt::format("{} is new at {}, and was not judged there",
                         name_of(matching_.points[row.point]), sets_.back().label));
    }
    describe_newest();
    decide();
    name_odd();
  }

  void leave_open(const std::string& why) {
    describe_rules();
    made_.newest.verdict = GateVerdict::inconclusive;
    for (auto* value :
         {&made_.newest.slowdown_percent, &made_.newest.p, &made_.newest.detectable_percent})
      *value = Unknown{why};
    made_.newest.interval_percent = Unknown{why};
    made_.newest.since = Unknown{why};
  }

  void describe_rules() {
    record::NewestSet& newest = made_.newest;
    newest.set = sets_.back().label;
    newest.pass_alpha = rules_.pass_alpha;
    newest.threshold_percent = 100 * rules_.threshold;
    newest.excluded_percent = 100 * rules_.excluded;
    newest.excluded_point_percent = 100 * rules_.excluded_point;
  }

  double adjusted(double p) const { return std::min(1., static_cast<double>(judged_.size()) * p); }

  double joint_p() const {
    double least = 1;
    for (const JudgedRow& one : judged_) least = std::min(least, one.against.slower_p());
    if (rows_.size() == 1) return mean_against_.slower_p();
    return std::min(1., 2 * std::min(mean_against_.slower_p(), adjusted(least)));
  }

  void describe_newest() {
    describe_rules();
    record::NewestSet& newest = made_.newest;
    const Continued& on_mean = mean_against_;
    newest.since = sets_[on_mean.first].label;
    newest.sets = sets_.size() - 1 - on_mean.first;
    newest.slowdown_percent = slowdown_of(on_mean.difference);
    newest.p = std::max(joint_p(), kLeastP);
    const double half = student_quantile(0.95, on_mean.freedom) * on_mean.error;
    newest.interval_percent =
        Interval{slowdown_of(on_mean.difference + half), slowdown_of(on_mean.difference - half)};
    newest.detectable_percent = slowdown_of(-minimum_detectable_difference(
        {on_mean.error, on_mean.freedom}, 2 * mean_level(), rules_.power));
    for (const JudgedRow& one : judged_) newest.points.push_back(judged_point(one));
  }

  static double rate_of(const MatchedPoint& point, const std::vector<std::size_t>& sets) {
    Work all;
    for (const std::size_t set : sets)
      for (const MeasuredLaunch* launch : point.launches[set])
        for (const Work& work : launch->repeats) all += work;
    return all.rate();
  }

  record::JudgedPoint judged_point(const JudgedRow& one) const {
    const MatchedPoint& point = matching_.points[one.row->point];
    record::JudgedPoint made;
    made.ranks = point.ranks;
    made.settings = point.settings;
    made.unit = point.launches[one.row->sets.back()].front()->unit;
    std::vector<std::size_t> level;
    for (std::size_t i = one.against.first; i + 1 < one.row->sets.size(); ++i)
      if (std::ranges::find(one.against.odd, i) == one.against.odd.end())
        level.push_back(one.row->sets[i]);
    made.base_value = rate_of(point, level);
    made.value = rate_of(point, {one.row->sets.back()});
    made.slowdown_percent = slowdown_of(one.against.difference);
    made.p = std::max(one.against.slower_p(), kLeastP);
    made.p_adjusted = std::max(adjusted(one.against.slower_p()), kLeastP);
    return made;
  }

  /// Slower by as much as a regression is, and not by a few of its launches alone.
  bool matters(const Continued& against) const {
    return slowdown_of(std::max(against.difference, against.median_difference)) >=
           100 * rules_.threshold;
  }

  bool is_slower() {
    if (joint_p() > rules_.alpha) return false;
    bool slower = matters(mean_against_);
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      const bool blamed = *made_.newest.points[i].p_adjusted <= rules_.alpha;
      if (blamed && matters(judged_[i].against)) slower = true;
    }
    for (std::size_t i = 0; slower && i < judged_.size(); ++i)
      made_.newest.points[i].regressed = *made_.newest.points[i].p_adjusted <= rules_.alpha;
    return slower;
  }

  bool excludes(const Continued& against, double slowdown) const {
    const double half = student_quantile(0.95, against.freedom) * against.error;
    return against.excluded_p(slowdown) <= rules_.pass_alpha &&
           against.difference - half > std::log1p(-slowdown);
  }

  bool is_excluded() const {
    return excludes(mean_against_, rules_.excluded) &&
           std::ranges::all_of(judged_, [&](const JudgedRow& one) {
             return excludes(one.against, rules_.excluded_point);
           });
  }

  /// Why the newest set can't pass, whatever was measured of it.
  std::vector<std::string> reasons_against_pass() const {
    std::vector<std::string> reasons;
    for (const PointRow& row : rows_)
      if (row.sets.back() + 1 != sets_.size() && row.sets.back() + 1 > mean_against_.first)
        reasons.push_back(fmt::format("it lacks {}", name_of(matching_.points[row.point])));
    if (sets_.back().failed > rules_.allowed_to_fail)
      reasons.push_back("launches of it did not end well");
    if (mean_against_.drift) reasons.push_back("the sets before it drift");
    return reasons;
  }

  void decide() {
    GateVerdict& verdict = made_.newest.verdict;
    verdict = GateVerdict::inconclusive;
    if (is_slower()) {
      verdict = GateVerdict::regressed;
      return;
    }
    if (!is_excluded()) return;
    const std::vector<std::string> reasons = reasons_against_pass();
    if (reasons.empty())
      verdict = GateVerdict::pass;
    else
      warn(fmt::format("{} is no slower where it was measured, but can't pass: {}",
                       sets_.back().label, listed(reasons)));
  }

  std::string label_of(const PointRow& row, std::size_t i) const {
    return sets_[row.sets[i]].label;
  }

  void name_odd() {
    for (const JudgedRow& one : judged_) {
      std::vector<std::string> names;
      for (const std::size_t i : one.against.odd) names.push_back(label_of(*one.row, i));
      if (!names.empty())
        warn(fmt::format("{}: alone far off the sets around {}, and not part of any level: {}",
                         name_of(matching_.points[one.row->point]),
                         names.size() == 1 ? "it" : "them", listed(names)));
    }
  }

  /// What changed in the row beside its rates is named where it changed.
  void name_points() {
    for (const PointRow& row : rows_) {
      const std::string name = name_of(matching_.points[row.point]);
      if (row.sets.front() > 0)
        warn(fmt::format("{} appears at {}: the sets before do not have it", name,
                         label_of(row, 0)));
      std::vector<std::string> lacking;
      for (std::size_t i = 1; i < row.sets.size(); ++i)
        for (std::size_t set = row.sets[i - 1] + 1; set < row.sets[i]; ++set)
          lacking.push_back(sets_[set].label);
      if (!lacking.empty()) warn(fmt::format("{} is missing in {}", name, listed(lacking)));
      if (row.sets.back() + 1 < sets_.size())
        warn(fmt::format("{} vanishes after {}: {} was not measured with it", name,
                         label_of(row, row.sets.size() - 1),
                         row.sets.back() + 2 == sets_.size()
                             ? sets_.back().label
                             : "every set up to " + sets_.back().label));
    }
  }

  void name_failures() {
    std::vector<std::string> all;
    for (const ResultSet& set : sets_) {
      std::set<std::string> statuses;
      for (const auto& [revision, failed] : set.failed_of)
        statuses.insert(failed.statuses.begin(), failed.statuses.end());
      if (set.failed > 0)
        all.push_back(
            fmt::format("{} of {} ({})", set.failed, set.label, fmt::join(statuses, ", ")));
    }
    if (!all.empty()) warn("launches that did not end well: " + listed(all));
  }

  static std::set<std::string> hosts_of(const ResultSet& set) {
    std::set<std::string> hosts;
    for (const MeasuredLaunch& launch : set.launches) hosts.insert(launch.host);
    return hosts;
  }

  void name_hosts() {
    std::vector<std::string> all;
    for (std::size_t i = 1; i < sets_.size(); ++i)
      if (const auto before = hosts_of(sets_[i - 1]), here = hosts_of(sets_[i]); before != here)
        all.push_back(fmt::format("at {} from {} to {}", sets_[i].label, fmt::join(before, ", "),
                                  fmt::join(here, ", ")));
    if (!all.empty()) warn("the host changes: " + listed(all));
  }

  void describe_noise() {
    if (mean_against_.deviation > 0) made_.found.deviation = mean_against_.deviation;
    const double noise = std::max(made_.found.deviation, made_.launch_noise.value_or(0));
    made_.smallest_step =
        noise * test_.smallest_step(sets_.size(), mean_level() / 2, kHistoryPower);
    for (const double percent : kAskedPercent) {
      made_.needed.push_back({percent, Unknown{"more than 40"}});
      for (const std::size_t size : kRowSizes) {
        const double step = noise * test_.smallest_step(size, mean_level() / 2, kHistoryPower);
        if (step > std::log1p(percent / 100)) continue;
        made_.needed.back().sets = size;
        break;
      }
    }
  }

  /// The least p that is told: Student's t has no 0.
  static constexpr double kLeastP = 1e-12;

  const std::vector<ResultSet>& sets_;
  const Matching& matching_;
  const HistoryRules rules_;
  std::vector<PointRow> rows_;           ///< of every point
  std::vector<const PointRow*> common_;  ///< of those that all sets have
  LevelRow mean_;                        ///< of the common ones
  Continued mean_against_;
  std::vector<JudgedRow> judged_;
  ChangeTest& test_;
  History made_;
};

}  // namespace

History find_history(const std::vector<ResultSet>& sets, const Matching& matching,
                     const HistoryRules& rules, ChangeTest& test) {
  if (sets.size() < kLeastSets)
    throw ConfigError(
        fmt::format("--history: {} sets in a row tell a change from sets that differ anyway too "
                    "badly; give {} or more",
                    sets.size(), kLeastSets));
  return HistoryFinder(sets, matching, rules, test).find();
}

namespace {

std::vector<record::HistorySet> sets_of(const std::vector<ResultSet>& sets,
                                        const History& history) {
  std::vector<record::HistorySet> all;
  for (std::size_t i = 0; i < sets.size(); ++i)
    all.push_back({compared_set(sets[i]), history.rates[i]});
  return all;
}

ChangeKind kind_of(const LevelChange& change) {
  if (!change.goes_back) return ChangeKind::step;
  return change.difference < 0 ? ChangeKind::dip : ChangeKind::peak;
}

record::HistoryChange written(const LevelChange& change,
                              const std::function<std::string(std::size_t)>& label) {
  record::HistoryChange made{label(change.first - 1),
                             label(change.first),
                             percent_of(change.difference),
                             change.p,
                             kind_of(change),
                             Unknown{"a step lasts"},
                             Unknown{"of the mean over the points"}};
  if (change.goes_back) made.until = label(change.end - 1);
  return made;
}

/// Of the mean, then of single points.
std::vector<record::HistoryChange> changes_of(const std::vector<ResultSet>& sets,
                                              const Matching& matching, const History& history) {
  std::vector<record::HistoryChange> all;
  for (const LevelChange& change : history.found.changes)
    all.push_back(written(change, [&](std::size_t i) { return sets[i].label; }));
  for (const PointChange& one : history.point_changes) {
    all.push_back(written(one.change, [&](std::size_t i) { return sets[one.sets[i]].label; }));
    all.back().point = name_of(matching.points[one.point]);
  }
  return all;
}

}  // namespace

HistoryResult make_history(const std::vector<ResultSet>& sets, const Matching& matching,
                           const History& history, double alpha,
                           const std::vector<std::string>& notes,
                           const std::vector<std::string>& warnings) {
  HistoryResult made;
  set_envelope(made, "history", {});
  made.alpha = alpha;
  made.points = history.points;
  made.sets = sets_of(sets, history);
  made.changes = changes_of(sets, matching, history);
  made.newest = history.newest;
  made.drift = Unknown{"no trend is shown that steps do not explain better"};
  if (const auto& drift = history.found.drift)
    made.drift = record::HistoryDrift{percent_of(drift->difference), drift->p};
  made.set_noise_percent = percent_of(history.found.deviation);
  made.launch_noise_percent = Unknown{"no set has two launches of a point"};
  if (history.launch_noise) made.launch_noise_percent = percent_of(*history.launch_noise);
  made.detectable_percent = percent_of(history.smallest_step);
  made.sets_needed = history.needed;
  made.notes = notes;
  made.warnings = warnings;
  made.warnings.insert(made.warnings.end(), history.warnings.begin(), history.warnings.end());
  made.findings = diagnosis::written(diagnosis::diagnose(record_json(made)));
  return made;
}

}  // namespace scalemark
