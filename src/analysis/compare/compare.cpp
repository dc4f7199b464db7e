// Compares result sets point by point, and makes the comparison record.
#include "analysis/compare/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "analysis/compare/point_test.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/preflight/values.hpp"
#include "error.hpp"
#include "json.hpp"
#include "measure/clock.hpp"
#include "measure/significance.hpp"
#include "measure/statistics.hpp"
#include "measure/trend.hpp"
#include "platform/platform.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "result/baseline.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

/// Host and name of a statistic.
using Place = std::pair<std::string, std::string>;

struct Sum {
  double sum = 0, count = 0;
};

MeasuredLaunch of_host(const PreflightResult& preflight, const std::string& host,
                       const std::filesystem::path& path) {
  MeasuredLaunch launch = start_launch(preflight, preflight.config, path);
  launch.host = host;
  launch.ranks =
      static_cast<int>(std::ranges::count(preflight.ranks, host, &record::CheckedRank::host));
  set_kind(launch, "preflight");
  launch.keys["device"] = preflight.device.value_or("");
  if (preflight.system.host == host) launch.machine = machine_of(preflight.system);
  return launch;
}

std::vector<MeasuredLaunch> launches_of_hosts(const Json& record,
                                              const std::filesystem::path& path) {
  const auto preflight = record_from<PreflightResult>(record);
  std::vector<MeasuredLaunch> launches;
  for (const record::CheckedHost& host : preflight.hosts)
    launches.push_back(of_host(preflight, host.host, path));
  if (launches.empty()) return launches;
  std::map<Place, Sum> sums;
  std::map<std::string, Metric> described;
  for (const PreflightValue& value : preflight_values(preflight)) {
    if (!value.value.is_number()) continue;
    const std::string name = value.check + "." + value.statistic;
    Sum& sum = sums[{value.host.empty() ? launches.front().host : value.host, name}];
    sum.sum += value.value.get<double>();
    ++sum.count;
    described[name] = {name, value.unit, false, value.higher_is_better, false};
  }
  for (MeasuredLaunch& launch : launches)
    for (const auto& [name, metric] : described)
      if (const auto found = sums.find({launch.host, name}); found != sums.end()) {
        launch.metrics[name] = found->second.sum / found->second.count;
        launch.described[name] = metric;
      }
  return launches;
}

}  // namespace

std::vector<MeasuredLaunch> preflight_launches(const Json& record,
                                               const std::filesystem::path& path) {
  try {
    return launches_of_hosts(record, path);
  } catch (const RecordFault& fault) {
    throw ResultError(fmt::format("record {}: {}", path.string(), fault.what()));
  }
}

RecordReader reader_of(const std::vector<std::string>& metrics) {
  return {kinds_with(metrics), [](const Json& record, const std::filesystem::path& path) {
            return kind_of(record) == "preflight" ? preflight_launches(record, path)
                                                  : measured_launches(record, path);
          }};
}

namespace {

/// The distinct values of a member of all launches.
std::vector<std::string> distinct(const ResultSet& set, std::string MeasuredLaunch::*member) {
  std::set<std::string> values;
  for (const MeasuredLaunch& launch : set.launches)
    if (!(launch.*member).empty()) values.insert(launch.*member);
  return {values.begin(), values.end()};
}

/// Variables that say how launches communicate and compute; those of a job or of a place differ by
/// themselves, and a record has the number of threads for itself.
bool tells(const std::string& name) {
  if (name.starts_with("OMPI_MCA_")) return name.find("btl") != name.npos;
  return is_library_variable(name) && name != "OMP_NUM_THREADS" && name != "MKL_NUM_THREADS";
}

std::map<std::string, std::set<std::string>> variables_of(const ResultSet& set) {
  std::map<std::string, std::set<std::string>> variables;
  for (const MeasuredLaunch& launch : set.launches)
    for (const auto& [name, value] : launch.environment)
      if (tells(name)) variables[name].insert(value);
  return variables;
}

/// How many launches others disturbed, and the worst of it.
void add_foreign_load(std::vector<std::string>& notes, const ResultSet& set) {
  const ForeignLoad* most = nullptr;
  int disturbed = 0;
  for (const MeasuredLaunch& launch : set.launches) {
    if (!launch.foreign || !launch.foreign->notable()) continue;
    ++disturbed;
    if (!most || launch.foreign->cpus > most->cpus) most = &*launch.foreign;
  }
  if (most)
    notes.push_back(fmt::format("{} of {} launches of {} were measured on a busy machine: {} of {}",
                                disturbed, set.launches.size(), set.label, most->words(),
                                most->host));
}

/// Says what a baseline kept of the day when it was saved.
void add_kept_warnings(std::vector<std::string>& notes, const ResultSet& set) {
  for (const std::string& warning : set.warnings)
    notes.push_back(
        fmt::format("the baseline {} was saved with a warning: {}", set.label, warning));
}

void add_divergence(std::vector<std::string>& warnings, const ResultSet& set) {
  const auto count = std::ranges::count_if(set.launches, &MeasuredLaunch::diverged);
  if (count == 0) return;
  warnings.push_back(
      fmt::format("the loss diverged in {} of {} launches of {}: their throughput stands, but such "
                  "a training learns nothing",
                  count, set.launches.size(), set.label));
}

}  // namespace

std::vector<std::string> divergence_warnings(const std::vector<ResultSet>& sets) {
  std::vector<std::string> warnings;
  for (const ResultSet& set : sets) add_divergence(warnings, set);
  return warnings;
}

std::vector<std::string> launch_warnings(const ResultSet& set) {
  std::vector<std::string> warnings;
  add_divergence(warnings, set);
  add_foreign_load(warnings, set);
  return warnings;
}

record::ComparedSet compared_set(const ResultSet& set) {
  std::vector<std::string> records;
  std::set<std::string> seen;
  for (const MeasuredLaunch& launch : set.launches)
    if (seen.insert(launch.id).second) records.push_back(launch.id);
  return {set.label,
          set.path,
          records,
          distinct(set, &MeasuredLaunch::revision),
          distinct(set, &MeasuredLaunch::host),
          set.left_out};
}

std::vector<record::ComparedSet> compared_sets(const std::vector<ResultSet>& sets) {
  std::vector<record::ComparedSet> all;
  std::ranges::transform(sets, std::back_inserter(all), compared_set);
  return all;
}

std::vector<std::string> set_notes(const std::vector<ResultSet>& sets, const Matching& matching,
                                   const std::vector<std::string>& varied) {
  std::vector<std::string> notes = matching.notes;
  const auto ours = variables_of(sets.front());
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto theirs = variables_of(sets[i]);
    std::set<std::string> names;
    for (const auto& [name, values] : ours)
      if (!theirs.contains(name) || theirs.at(name) != values) names.insert(name);
    for (const auto& [name, values] : theirs)
      if (!ours.contains(name)) names.insert(name);
    for (const std::string& declared : varied)
      if (declared.starts_with("env.")) names.erase(declared.substr(4));
    if (!names.empty())
      notes.push_back(fmt::format("variables differ between {} and {}: {}", sets[0].label,
                                  sets[i].label, fmt::join(names, ", ")));
  }
  for (const ResultSet& set : sets) {
    add_foreign_load(notes, set);
    add_kept_warnings(notes, set);
  }
  for (const ResultSet& set : sets) {
    const auto revisions = distinct(set, &MeasuredLaunch::revision);
    if (revisions.size() > 1)
      notes.push_back(fmt::format("{} pools launches of {} builds; --by revision compares them",
                                  set.label, revisions.size()));
  }
  return notes;
}

std::vector<std::string> machine_notes(const std::vector<ResultSet>& sets) {
  std::vector<std::string> notes;
  for (std::size_t i = 1; i < sets.size(); ++i) {
    auto differences = machine_differences(sets[0], sets[i], kHardwareKeys);
    std::ranges::move(machine_differences(sets[0], sets[i], kSoftwareKeys),
                      std::back_inserter(differences));
    if (!differences.empty())
      notes.push_back(fmt::format("the machines of {} and {} differ in {}", sets[0].label,
                                  sets[i].label, fmt::join(differences, "; ")));
  }
  return notes;
}

namespace {

struct Span {
  std::string first, last;
};

/// From the first to the last start of a set's launches at matched points; none below two starts.
std::optional<Span> span_of(const Matching& matching, std::size_t set) {
  Span span;
  for (const MatchedPoint& point : matching.points)
    for (const MeasuredLaunch* launch : point.launches[set]) {
      const std::string& start = launch->started_at;
      if (start.empty()) continue;
      if (span.first.empty() || start < span.first) span.first = start;
      if (start > span.last) span.last = start;
    }
  if (span.first == span.last) return std::nullopt;
  return span;
}

std::string apart(const ResultSet& early, const Span& early_span, const ResultSet& late,
                  const Span& late_span) {
  return fmt::format(
      "all launches of {} (last start {}) lie before those of {} (first start {}): what the "
      "machine "
      "did in between reads as a difference; measure them side by side, in one sweep or by "
      "scalemark gate --base --new",
      early.label, early_span.last, late.label, late_span.first);
}

struct Timed {
  double seconds, residual;
};

/// Returns the logarithms of every point less their mean, so that points of unlike rates are one
/// series.
std::vector<Timed> residuals(const Matching& matching, std::size_t set, const std::string& metric) {
  std::vector<Timed> series;
  for (const MatchedPoint& point : matching.points) {
    const Repeats repeats = repeats_of(point.launches[set], metric, false);
    if (repeats.size() < 2) continue;
    const auto logs = logs_of(repeats);
    const double level = mean(logs);
    for (std::size_t i = 0; i < repeats.size(); ++i) {
      const double seconds = utc_seconds(repeats[i].launch->started_at);
      if (std::isfinite(seconds) && std::isfinite(logs[i]))
        series.push_back({seconds, logs[i] - level});
    }
  }
  std::ranges::stable_sort(series, {}, &Timed::seconds);
  return series;
}

TrendTest trend_of(const std::vector<Timed>& series) {
  std::vector<double> times, values;
  for (const Timed& one : series) {
    times.push_back(one.seconds);
    values.push_back(one.residual);
  }
  return find_trend(times, values);
}

void warn_of_trends(std::vector<std::string>& warnings, const std::vector<ResultSet>& sets,
                    const Matching& matching, const std::string& metric, double alpha) {
  std::vector<TrendTest> trends;
  std::vector<double> p;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    trends.push_back(trend_of(residuals(matching, set, metric)));
    p.push_back(trends.back().p);
  }
  const auto adjusted = holm_adjusted(p);
  for (std::size_t set = 0; set < sets.size(); ++set)
    if (adjusted[set] <= alpha)
      warnings.push_back(fmt::format(
          "{} of {} has a trend of {:+.1f} % from its first to its last launch (Mann-Kendall, p = "
          "{:.2g}): its launches are not of one level, and p and intervals assume that they are",
          metric, sets[set].label, 100 * std::expm1(trends[set].change), p[set]));
}

}  // namespace

std::vector<std::string> time_warnings(const std::vector<ResultSet>& sets, const Matching& matching,
                                       const std::string& metric, double alpha) {
  std::vector<std::string> warnings;
  const auto base = span_of(matching, 0);
  for (std::size_t set = 1; set < sets.size(); ++set) {
    const auto other = span_of(matching, set);
    if (!base || !other) continue;
    if (base->last < other->first)
      warnings.push_back(apart(sets[0], *base, sets[set], *other));
    else if (other->last < base->first)
      warnings.push_back(apart(sets[set], *other, sets[0], *base));
  }
  warn_of_trends(warnings, sets, matching, metric == "efficiency" ? "throughput" : metric, alpha);
  return warnings;
}

namespace {

using Launches = std::vector<const MeasuredLaunch*>;

constexpr std::size_t kMostNumbers = 8;  ///< repeats that a sentence lists

std::string place(const std::vector<ResultSet>& sets, const MatchedPoint& point, std::size_t set) {
  return fmt::format("{} at {} {}{}", sets[set].label, point.ranks,
                     point.ranks == 1 ? "rank" : "ranks", settings_text(point));
}

/// "repeat 3", "repeats 3, 5 and 2 more".
std::string listed_numbers(const std::vector<std::int64_t>& numbers) {
  const std::vector<std::int64_t> some(
      numbers.begin(),
      numbers.begin() + static_cast<std::ptrdiff_t>(std::min(numbers.size(), kMostNumbers)));
  std::string text =
      fmt::format("{} {}", numbers.size() == 1 ? "repeat" : "repeats", fmt::join(some, ", "));
  if (numbers.size() > some.size())
    text += fmt::format(" and {} more", numbers.size() - some.size());
  return text;
}

bool both_have(const MatchedPoint& point, std::size_t set) {
  return !point.launches[0].empty() && !point.launches[set].empty();
}

/// [point]: index of the one with the least ranks among those of the same settings that the base
/// and `set` have.
std::map<std::size_t, std::size_t> smallest_points(const Matching& matching, std::size_t set) {
  std::map<std::string, std::size_t> least;
  std::map<std::size_t, std::size_t> smallest;
  for (std::size_t i = 0; i < matching.points.size(); ++i) {
    const MatchedPoint& point = matching.points[i];
    if (!both_have(point, set)) continue;
    const auto [at, is_new] = least.try_emplace(point.settings.dump(), i);
    if (matching.points[at->second].ranks < point.ranks) smallest[i] = at->second;
  }
  return smallest;
}

Launches all_launches(const Matching& matching) {
  Launches all;
  for (const MatchedPoint& point : matching.points)
    for (const auto& launches : point.launches)
      all.insert(all.end(), launches.begin(), launches.end());
  return all;
}

class Comparer {
 public:
  Comparer(const std::vector<ResultSet>& sets, const Matching& matching,
           const CompareQuestions& questions)
      : sets_(sets), matching_(matching), questions_(questions) {
    made_.metric = find_metric(questions.metric, all_launches(matching));
  }

  MetricComparison compare() {
    for (std::size_t set = 1; set < sets_.size(); ++set) {
      if (questions_.metric == "efficiency") smallest_ = smallest_points(matching_, set);
      for (std::size_t point = 0; point < matching_.points.size(); ++point)
        if (both_have(matching_.points[point], set)) add(set, point);
    }
    if (made_.differences.empty()) refuse_empty();
    judge_points(made_.differences, values_, made_.metric, questions_.test);
    warn_of_order();
    warn_of_outliers();
    return std::move(made_);
  }

 private:
  void warn(const std::string& text) {
    if (said_.insert(text).second) made_.warnings.push_back(text);
  }

  void note(const std::string& text) {
    if (said_.insert(text).second) made_.notes.push_back(text);
  }

  void add(std::size_t set, std::size_t index) {
    const MatchedPoint& point = matching_.points[index];
    Difference difference;
    difference.set_index = set;
    difference.point_index = index;
    difference.set = sets_[set].label;
    difference.ranks = point.ranks;
    difference.settings = point.settings;
    if (is_of_work(questions_.metric) && needs_rounds(point.launches[0], point.launches[set]))
      difference.repeat_unit = RepeatUnit::in_process;
    Repeats base = repeats_at(index, 0, difference.in_process());
    Repeats other = repeats_at(index, set, difference.in_process());
    if (!are_usable(base, point, 0) || !are_usable(other, point, set)) return;
    difference.unit = unit_of(base, other);
    if (difference.in_process())
      warn(
          "repeats within one launch share its placement of ranks and memory: they say little of "
          "other launches; compare fresh launches (scalemark sweep) before you believe a "
          "difference");
    match_repeats(difference, base, other, point);
    values_.push_back(test_point(difference, base, other, questions_.metric, questions_.test));
    orders_.push_back(order_of(difference, base, other));
    difference.confounded = orders_.back().confounded;
    made_.differences.push_back(difference);
  }

  /// Rounds of a launch and points of one sweep were put in a random order by whoever launched
  /// them.
  OrderFindings order_of(const Difference& difference, const Repeats& base,
                         const Repeats& other) const {
    if (difference.in_process() || of_one_sweep(base, other)) return {};
    // What a drift makes of sets that are equivalent must come up to what they may differ by.
    const double asked = questions_.test.equivalent_percent.value_or(0);
    const double least =
        std::abs(difference.difference_percent) < asked ? std::log1p(asked / 100) : 0;
    return look_at_order(timed_logs(base, other, difference.paired()),
                         std::log1p(difference.difference_percent / 100), least, sets_[0].label,
                         difference.set);
  }

  Repeats repeats_at(std::size_t index, std::size_t set, bool rounds) const {
    const Launches& launches = matching_.points[index].launches[set];
    if (questions_.metric != "efficiency") return repeats_of(launches, questions_.metric, rounds);
    const auto smallest = smallest_.find(index);
    if (smallest == smallest_.end()) return {};
    return efficiencies(
        repeats_of(launches, "throughput", rounds),
        repeats_of(matching_.points[smallest->second].launches[set], "throughput", rounds));
  }

  /// A ratio needs numbers above 0: where noise makes one of them less, the point has none.
  bool are_usable(const Repeats& repeats, const MatchedPoint& point, std::size_t set) {
    if (questions_.metric == "efficiency" && repeats.empty()) return false;
    const std::size_t lacking =
        point.launches[set].size() - std::min(point.launches[set].size(), repeats.size());
    const bool rounds = repeats.size() > point.launches[set].size();
    if (lacking > 0 && !rounds)
      note(fmt::format("{}: {} of {} launches have no {} and were left out",
                       place(sets_, point, set), lacking, point.launches[set].size(),
                       questions_.metric));
    const auto bad =
        std::ranges::find_if(repeats, [](const Repeat& one) { return !(one.value > 0); });
    if (bad != repeats.end())
      note(fmt::format(
          "{}: {} is {:g} in {}, of which there is no ratio: the point was not compared",
          place(sets_, point, set), questions_.metric, bad->value, bad->launch->path.string()));
    return !repeats.empty() && bad == repeats.end();
  }

  std::string unit_of(const Repeats& base, const Repeats& other) const {
    const Metric& metric = made_.metric;
    if (!metric.of_record) return metric.unit;
    std::vector<const MeasuredLaunch*> launches;
    for (const Repeats* repeats : {&base, &other})
      for (const Repeat& repeat : *repeats) launches.push_back(repeat.launch);
    return common_unit(launches, metric.name) + metric.unit;
  }

  /// Pairs where they are declared, or where repeats of one sweep have partners.
  void match_repeats(Difference& difference, Repeats& base, Repeats& other,
                     const MatchedPoint& point) {
    const bool swept = !difference.in_process() && of_one_sweep(base, other);
    if (!questions_.paired && !swept) return;
    Pairing pairing = pair_up(base, other);
    if (pairing.base.empty()) {
      if (!questions_.paired) return;
      throw ConfigError(fmt::format(
          "--paired: {} and {} have no repeat in common ({}; {}); leave --paired out, or compare "
          "sets whose launches were numbered alike",
          place(sets_, point, 0), difference.set, listed_numbers(pairing.base_alone),
          listed_numbers(pairing.other_alone)));
    }
    warn_of_single(pairing.base_alone, point, 0, difference.set_index);
    warn_of_single(pairing.other_alone, point, difference.set_index, 0);
    difference.design = PointDesign::paired;
    base = std::move(pairing.base);
    other = std::move(pairing.other);
  }

  void warn_of_single(const std::vector<std::int64_t>& numbers, const MatchedPoint& point,
                      std::size_t set, std::size_t other) {
    if (numbers.empty()) return;
    warn(fmt::format("{}: {} of {} without a partner in {}, and left out: {}",
                     place(sets_, point, set), numbers.size(),
                     numbers.size() == 1 ? "its repeats is" : "its repeats are", sets_[other].label,
                     listed_numbers(numbers)));
  }

  void warn_of_order() {
    for (std::size_t i = 0; i < orders_.size(); ++i) {
      const Difference& one = made_.differences[i];
      for (const std::string& warning : orders_[i].warnings) warn(warning);
      if (one.verdict == record::kConfounded && !orders_[i].drift.empty())
        warn(place(sets_, matching_.points[one.point_index], one.set_index) + ": " +
             orders_[i].drift);
    }
  }

  void warn_of_outliers() {
    for (const Difference& one : made_.differences)
      if (one.estimates_disagree)
        warn(fmt::format(
            "{}: {:+.1f} % here, but the bare mean says {:+.1f} % and Hodges-Lehmann {:+.1f} %, "
            "further apart than half the interval is wide: some launches lie far off, or have two "
            "levels; look at each of them",
            place(sets_, matching_.points[one.point_index], one.set_index), one.difference_percent,
            one.mean_percent, one.hodges_lehmann_percent));
  }

  [[noreturn]] void refuse_empty() const {
    const std::string& metric = questions_.metric;
    for (const std::string& text : made_.notes)
      if (text.find("no ratio") != text.npos) throw ConfigError(text);
    if (metric == "efficiency")
      throw ConfigError(
          "efficiency is a ratio to the smallest point: give sets that both have two rank counts "
          "or "
          "more of the same settings");
    for (const MeasuredLaunch* launch : all_launches(matching_)) {
      if (launch->metrics.contains(metric)) continue;
      std::vector<std::string> there;
      if (!launch->repeats.empty()) there = {"throughput", "throughput_per_rank"};
      for (const auto& [name, value] : launch->metrics) there.push_back(name);
      throw ConfigError(fmt::format("{}: has no {}; it has {}", launch->path.string(), metric,
                                    fmt::join(there, ", ")));
    }
    throw ConfigError(fmt::format("no point of two sets has {}", metric));
  }

  const std::vector<ResultSet>& sets_;
  const Matching& matching_;
  const CompareQuestions& questions_;
  std::map<std::size_t, std::size_t> smallest_;  ///< of the set that is looked at
  std::vector<PointValues> values_;              ///< of each difference
  std::vector<OrderFindings> orders_;            ///< likewise
  std::set<std::string> said_;
  MetricComparison made_;
};

}  // namespace

MetricComparison compare_sets(const std::vector<ResultSet>& sets, const Matching& matching,
                              const CompareQuestions& questions) {
  return Comparer(sets, matching, questions).compare();
}

std::vector<std::string> default_metrics(const Matching& matching) {
  const std::size_t sets = matching.points.front().launches.size();
  for (std::size_t set = 1; set < sets; ++set)
    if (!smallest_points(matching, set).empty()) return {"throughput", "efficiency"};
  return {"throughput"};
}

namespace {

std::string better(const Metric& metric) { return metric.higher_is_better ? "higher" : "lower"; }

std::vector<record::ComparedPoint> points_of(const MetricComparison& metric) {
  return {metric.differences.begin(), metric.differences.end()};
}

/// Points that the base or another set does not have.
std::vector<record::UnmatchedPoint> unmatched_points(const std::vector<ResultSet>& sets,
                                                     const Matching& matching) {
  std::vector<record::UnmatchedPoint> unmatched;
  for (const MatchedPoint& point : matching.points)
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (!point.launches[i].empty()) continue;
      std::vector<std::string> there;
      for (std::size_t k = 0; k < sets.size(); ++k)
        if (!point.launches[k].empty()) there.push_back(sets[k].label);
      unmatched.push_back({point.ranks, point.settings, sets[i].label, there});
    }
  return unmatched;
}

/// Those of a further metric begin with its name, unless they hold for the first one too.
void add_sentences(std::vector<std::string>& all, const std::vector<std::string>& sentences,
                   const MetricComparison& metric, bool first) {
  for (const std::string& sentence : sentences)
    if (first)
      all.push_back(sentence);
    else if (std::ranges::find(all, sentence) == all.end())
      all.push_back(metric.metric.name + ": " + sentence);
}

}  // namespace

Comparison make_comparison(const std::vector<ResultSet>& sets, const Matching& matching,
                           const CompareQuestions& questions,
                           const std::vector<MetricComparison>& metrics) {
  const MetricComparison& first = metrics.front();
  Comparison made;
  set_envelope(made, "comparison", {});
  made.metric = first.metric.name;
  made.better = better(first.metric);
  made.alpha = questions.test.alpha;
  made.power = questions.test.power;
  made.equivalent_percent = {questions.test.equivalent_percent, "no --equivalent was asked for"};
  made.varied = questions.varied;
  made.base = sets.front().label;
  made.sets = compared_sets(sets);
  made.points = points_of(first);
  auto& further = made.further.emplace();
  for (const MetricComparison& other : std::span(metrics).subspan(1))
    further.push_back({other.metric.name, better(other.metric), points_of(other)});
  made.unmatched = unmatched_points(sets, matching);
  made.notes = set_notes(sets, matching, questions.varied);
  std::ranges::move(machine_notes(sets), std::back_inserter(made.notes));
  made.warnings = set_warnings(sets, questions.by_host);
  std::ranges::move(time_warnings(sets, matching, first.metric.name, questions.test.alpha),
                    std::back_inserter(made.warnings));
  std::ranges::move(divergence_warnings(sets), std::back_inserter(made.warnings));
  for (const MetricComparison& metric : metrics) {
    add_sentences(made.notes, metric.notes, metric, &metric == &first);
    add_sentences(made.warnings, metric.warnings, metric, &metric == &first);
  }
  made.findings = diagnosis::written_findings(record_json(made), sets, matching);
  return made;
}

}  // namespace scalemark
