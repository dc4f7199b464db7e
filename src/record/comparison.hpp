// The records of result sets that are held against each other: those of `scalemark compare`, of a
// gate, and of a history.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "measure/statistics.hpp"
#include "record/baseline.hpp"
#include "record/parts.hpp"

namespace scalemark {

/// Which repeats of two sets belong together.
enum class PointDesign { paired, two_sample };
constexpr auto names_of(PointDesign) { return Names{"paired", "two_sample"}; }

/// How the launches of both sets of a gate belong together.
enum class GateMode {
  sequential,  ///< pairs that a gate has launched side by side, looked at while they came
  pairs,       ///< pairs, looked at once
  samples,     ///< measured apart, looked at once: two samples
};
constexpr auto names_of(GateMode) { return Names{"sequential pairs", "pairs", "samples"}; }

enum class GateVerdict { regressed, pass, inconclusive, more_pairs };
constexpr auto names_of(GateVerdict) {
  return Names{"regressed", "pass", "inconclusive", "more pairs"};
}

enum class ChangeKind { step, dip, peak };
constexpr auto names_of(ChangeKind) { return Names{"step", "dip", "peak"}; }

namespace record {

struct ComparedSet {
  std::string label, path;
  std::vector<std::string> records, revisions, hosts, left_out;
  static void describe(Fields& fields);
};

/// Verdicts of a point that leave open whether there is a difference.
inline constexpr const char* kNoDifference = "no difference shown";
inline constexpr const char* kTooFew = "too few launches";
/// The values differ, but the order of the launches may be why.
inline constexpr const char* kConfounded = "confounded with time";

/// One set against the base at one point. Percent: 100 (ratio - 1).
struct ComparedPoint {
  std::string set;
  int ranks = 1;
  Json settings = Json::object();
  std::string unit;
  PointDesign design = PointDesign::two_sample;
  RepeatUnit repeat_unit = RepeatUnit::launch;
  std::size_t base_repeats = 0, repeats = 0;
  double base_value = 0, value = 0;
  double difference_percent = 0;
  Known<Interval> interval_percent;
  Known<double> interval_confidence;
  double hodges_lehmann_percent = 0;
  Known<double> p, p_adjusted;  ///< two-sided; none of a single repeat
  Known<double> minimum_detectable_percent;
  std::size_t repeats_needed = 0;  ///< of each set, for a difference to be shown
  Known<double> p_equivalent;
  Known<std::size_t> repeats_for_equivalence;
  std::string verdict;

  bool paired() const { return design == PointDesign::paired; }
  bool in_process() const { return repeat_unit == RepeatUnit::in_process; }
  static void describe(Fields& fields);
};

struct FurtherMetric {
  std::string metric, better;
  std::vector<ComparedPoint> points;
  static void describe(Fields& fields);
};

/// What one set lacks and others have.
struct UnmatchedPoint {
  int ranks = 1;
  Json settings = Json::object();
  std::string missing_in;
  std::vector<std::string> measured_in;
  static void describe(Fields& fields);
};

struct GateLook {
  std::size_t pairs = 0;
  double alarm_spent = 0, pass_spent = 0;
  static void describe(Fields& fields);
};
/// What a gate was asked to keep to.
struct GateRules {
  GateMode mode = GateMode::pairs;
  double alpha = 0, pass_alpha = 0, threshold_percent = 0, excluded_percent = 0;
  Known<double> excluded_point_percent;
  double power = 0;
  Known<std::vector<GateLook>> looks;
  static void describe(Fields& fields);
};

/// A point of a gate's decision; differences are of it alone.
struct JudgedPoint {
  int ranks = 1;
  Json settings = Json::object();
  std::string unit;
  double base_value = 0, value = 0;  ///< total units / total seconds of the launches used
  double slowdown_percent = 0;       ///< 100 (1 - exp(centre of the log ratios))
  Known<double> p, p_adjusted;       ///< one-sided: of this point alone, and among all of them
  bool regressed = false;            ///< the gate is, and this point is among those to blame
  static void describe(Fields& fields);
};

/// What a gate launched.
struct GateLaunches {
  std::size_t launched = 0;  ///< launches that this verdict rests on or that were made for it
  std::size_t most = 0;      ///< that the budget of pairs allowed
  double seconds = 0;        ///< of all of them together
  std::string alternate;     ///< "steps": the launches of a pair were interleaved; "launches"
  std::string stopped;       ///< why no more pairs came
  static void describe(Fields& fields);
};

struct HistorySet : ComparedSet {
  double relative_rate = 1;
  static void describe(Fields& fields);
};
struct HistoryChange {
  std::string after, at;
  double change_percent = 0, p = 1;
  Known<ChangeKind> kind;
  Known<std::string> until;
  Known<std::string> point;  ///< unknown: of the mean over the points
  static void describe(Fields& fields);
};
struct HistoryDrift {
  double change_percent = 0, p = 1;
  static void describe(Fields& fields);
};
/// The last set of a history against the level that it would continue.
struct NewestSet {
  std::string set;
  GateVerdict verdict = GateVerdict::inconclusive;
  double pass_alpha = 0.05, threshold_percent = 0, excluded_percent = 0, excluded_point_percent = 0;
  Known<std::string> since;
  std::size_t sets = 0;
  Known<double> slowdown_percent;
  Known<Interval> interval_percent;
  Known<double> p, detectable_percent;
  std::vector<JudgedPoint> points;
  static void describe(Fields& fields);
};
struct SetsNeeded {
  double change_percent = 0;
  Known<std::size_t> sets;  ///< in whose middle it would be found
  static void describe(Fields& fields);
};

}  // namespace record

/// Result sets against the first of them, point by point.
struct Comparison : record::Envelope {
  std::string metric, better;
  double alpha = 0, power = 0;
  Known<double> equivalent_percent;
  std::vector<std::string> varied;
  std::string base;
  std::vector<record::ComparedSet> sets;
  std::vector<record::ComparedPoint> points;
  Known<std::vector<record::FurtherMetric>> further;
  std::vector<record::UnmatchedPoint> unmatched;
  std::vector<std::string> notes;
  static void describe(Fields& fields);
};

/// Whether a new build is slower than the base.
struct Verdict : record::Envelope {
  Known<GateVerdict> verdict;
  Known<int> exit_code;
  Known<record::GateRules> design;
  Known<std::size_t> repeats;
  Known<double> slowdown_percent;
  Known<Interval> interval_percent;
  Known<double> p, detectable_percent;
  Known<std::size_t> repeats_for_pass;
  Known<std::vector<record::JudgedPoint>> points;
  Known<std::vector<std::string>> varied;
  Known<std::vector<record::ComparedSet>> sets;
  Known<record::BaselineReference> baseline;
  Known<record::GateLaunches> launches;
  std::vector<std::string> notes;
  static void describe(Fields& fields);
};

/// Where a row of result sets changed its level, and whether the newest is slower.
struct HistoryResult : record::Envelope {
  double alpha = 0;
  std::size_t points = 0;
  std::vector<record::HistorySet> sets;
  std::vector<record::HistoryChange> changes;
  Known<record::NewestSet> newest;
  Known<record::HistoryDrift> drift;
  Known<double> set_noise_percent, launch_noise_percent, detectable_percent;
  Known<std::vector<record::SetsNeeded>> sets_needed;
  std::vector<std::string> notes;
  static void describe(Fields& fields);
};

}  // namespace scalemark
