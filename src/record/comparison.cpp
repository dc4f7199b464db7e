// The keys of comparisons, verdicts and histories.
#include "record/comparison.hpp"

namespace scalemark {
namespace record {
namespace {

constexpr std::string_view kMetricPattern =
    "^(throughput|throughput_per_rank|efficiency|exposed_seconds|communication_cpu_seconds|"
    "wire_bytes|nic_bytes|time_to_solution|target_steps|target_seconds|latency_mean|latency_p50|"
    "latency_p90|latency_p99|latency_p99_9|joules_per_sample|sum_of_rates|"
    R"([a-z]+[^ ]*\.[a-z0-9_]+)$)";
constexpr std::string_view kVerdictPattern =
    "^(faster|slower|lower|higher|no difference shown|too few launches|confounded with time|"
    "equivalent within [0-9.e-]+ %)$";

/// The keys of a metric, which the record has for its first one and a list for all others.
template <typename T>
void describe_metric(Fields& fields) {
  fields.add("metric", &T::metric, "one of [these](compare.md#metrics)").pattern(kMetricPattern);
  fields.add("better", &T::better, "what of it is better").one_of({"higher", "lower"});
}

template <typename T>
void describe_points(Fields& fields) {
  fields
      .add("points", &T::points,
           "an entry for each set but the base and each point that both have "
           "([formulas](measurements.md#two-sets))")
      .filled();
}

template <typename T>
void describe_place(Fields& fields) {
  fields.add("ranks", &T::ranks, "of the point").at_least(1);
  fields.add("settings", &T::settings, "in which the point differs from others with as many ranks")
      .object();
}

template <typename T>
void describe_varied(Fields& fields) {
  fields.add("varied", &T::varied, "keys declared to differ").each(1);
}

template <typename T>
void describe_notes(Fields& fields) {
  fields.add("notes", &T::notes, "what else differs between the sets").each(1);
}

}  // namespace

void ComparedSet::describe(Fields& fields) {
  fields.add("label", &ComparedSet::label, "its name").filled();
  fields.add("path", &ComparedSet::path, "as the user wrote it").filled();
  fields.add("records", &ComparedSet::records, "their ids").filled().pattern(kUuidPattern);
  fields.add("revisions", &ComparedSet::revisions, "of the builds that measured it").each(1);
  fields.add("hosts", &ComparedSet::hosts, "on which it was measured");
  fields.add("left_out", &ComparedSet::left_out, "what of the path was not compared, and why")
      .each(1);
}

void ComparedPoint::describe(Fields& fields) {
  fields.add("set", &ComparedPoint::set, "label").filled();
  describe_place<ComparedPoint>(fields);
  fields.add("unit", &ComparedPoint::unit, "of the values");
  fields.add("design", &ComparedPoint::design, "whether repeats of both sets belong together");
  fields.add("repeat_unit", &ComparedPoint::repeat_unit,
             "`launch`, or `in_process`: rounds of one curve");
  fields.add("base_repeats", &ComparedPoint::base_repeats, "of the base").at_least(1);
  fields.add("repeats", &ComparedPoint::repeats, "of this set").at_least(1);
  fields.add("base_value", &ComparedPoint::base_value, "of the base").above(0);
  fields.add("value", &ComparedPoint::value, "of this set").above(0);
  fields
      .add("difference_percent", &ComparedPoint::difference_percent,
           "of the winsorised mean log ratio")
      .unit("%");
  fields
      .add("interval_percent", &ComparedPoint::interval_percent,
           "of the same; none below 5 repeats of a set")
      .unit("%");
  fields.add("interval_confidence", &ComparedPoint::interval_confidence, "that it has")
      .within(0.9, 1);
  fields.add("hodges_lehmann_percent", &ComparedPoint::hodges_lehmann_percent, "robust estimate")
      .unit("%");
  fields.add("p", &ComparedPoint::p, "exact, two-sided").above(0).at_most(1);
  fields.add("p_adjusted", &ComparedPoint::p_adjusted, "the same for all points together")
      .above(0)
      .at_most(1);
  fields
      .add("minimum_detectable_percent", &ComparedPoint::minimum_detectable_percent,
           "what would have been found with `power`")
      .unit("%")
      .at_least(0);
  fields.add("repeats_needed", &ComparedPoint::repeats_needed, "to show a difference").at_least(5);
  fields
      .add("p_equivalent", &ComparedPoint::p_equivalent, "of the test within `equivalent_percent`")
      .above(0)
      .at_most(1)
      .since(3);
  fields
      .add("repeats_for_equivalence", &ComparedPoint::repeats_for_equivalence,
           "to show equivalence")
      .at_least(5)
      .since(3);
  fields
      .add("verdict", &ComparedPoint::verdict,
           "`faster`, `slower`, `lower`, `higher`, `equivalent within N %`, `no difference shown`, "
           "`too few launches` or `confounded with time`")
      .pattern(kVerdictPattern);
}

void FurtherMetric::describe(Fields& fields) {
  describe_metric<FurtherMetric>(fields);
  describe_points<FurtherMetric>(fields);
}

void UnmatchedPoint::describe(Fields& fields) {
  describe_place<UnmatchedPoint>(fields);
  fields.add("missing_in", &UnmatchedPoint::missing_in, "label of a set").filled();
  fields.add("measured_in", &UnmatchedPoint::measured_in, "labels of those that have it")
      .filled()
      .each(1);
}

void GateLook::describe(Fields& fields) {
  fields.add("pairs", &GateLook::pairs, "after which the gate decides").at_least(1);
  fields.add("alarm_spent", &GateLook::alarm_spent, "share of `alpha` up to then").at_least(0);
  fields.add("pass_spent", &GateLook::pass_spent, "share of `pass_alpha` up to then").at_least(0);
}

void GateRules::describe(Fields& fields) {
  const auto probability = [](Field& field) { field.above(0).below(1); };
  fields.add("mode", &GateRules::mode, "how the launches of both sets belong together");
  probability(fields.add("alpha", &GateRules::alpha, "level of false alarms"));
  probability(fields.add("pass_alpha", &GateRules::pass_alpha, "level of false passes"));
  fields
      .add("threshold_percent", &GateRules::threshold_percent,
           "least slowdown that is called a regression")
      .unit("%")
      .at_least(0);
  fields.add("excluded_percent", &GateRules::excluded_percent, "mean slowdown that a pass excludes")
      .unit("%")
      .above(0);
  fields
      .add("excluded_point_percent", &GateRules::excluded_point_percent,
           "slowdown of any one point that a pass excludes")
      .unit("%")
      .above(0)
      .since(3);
  probability(fields.add("power", &GateRules::power, "of the detectable slowdown"));
  fields.add("looks", &GateRules::looks, "when a gate of sequential pairs decides").filled();
}

void JudgedPoint::describe(Fields& fields) {
  describe_place<JudgedPoint>(fields);
  fields.add("unit", &JudgedPoint::unit, "of the values").one_of(unit_words());
  fields.add("base_value", &JudgedPoint::base_value, "of the base, total units / total seconds")
      .unit("units/s")
      .above(0);
  fields.add("value", &JudgedPoint::value, "the same of the new build").unit("units/s").above(0);
  fields.add("slowdown_percent", &JudgedPoint::slowdown_percent, "of this point alone").unit("%");
  fields.add("p", &JudgedPoint::p, "one-sided, of this point alone").above(0).at_most(1);
  fields.add("p_adjusted", &JudgedPoint::p_adjusted, "the same among all points (maxT)")
      .above(0)
      .at_most(1);
  fields.add("regressed", &JudgedPoint::regressed, "whether this point is to blame");
}

void GateLaunches::describe(Fields& fields) {
  fields.add("launched", &GateLaunches::launched, "in all").at_least(0);
  fields.add("most", &GateLaunches::most, "that there could have been").at_least(0);
  fields.add("seconds", &GateLaunches::seconds, "of all of them").unit("s").at_least(0);
  fields
      .add("alternate", &GateLaunches::alternate,
           "what of the builds alternates: `steps` (slices of interleaved runs) or `launches`")
      .one_of({"steps", "launches"});
  fields.add("stopped", &GateLaunches::stopped, "why no more came")
      .one_of({"verdict", "pairs", "max_seconds", "failure"});
}

void HistorySet::describe(Fields& fields) {
  ComparedSet::describe(fields);
  fields
      .add("relative_rate", &HistorySet::relative_rate,
           "against the first set, geometric mean over the points")
      .above(0);
}

void HistoryChange::describe(Fields& fields) {
  fields.add("after", &HistoryChange::after, "label of the last set of the old level").filled();
  fields.add("at", &HistoryChange::at, "label of the first set of the new level").filled();
  fields.add("change_percent", &HistoryChange::change_percent, "of the level").unit("%");
  fields.add("p", &HistoryChange::p, "of no change").above(0).below(1);
  fields.add("kind", &HistoryChange::kind, "`step`, or one that goes back: `dip` or `peak`")
      .since(3);
  fields.add("until", &HistoryChange::until, "label of the last set of a dip or peak")
      .filled()
      .since(3);
  fields.add("point", &HistoryChange::point, "that changed, unlike the mean over the points")
      .filled()
      .since(10);
}

void NewestSet::describe(Fields& fields) {
  fields.add("set", &NewestSet::set, "its label").filled();
  fields
      .add("verdict", &NewestSet::verdict,
           "`regressed`, `pass` or `inconclusive`: exit code 1, 0 or 3")
      .one_of({"regressed", "pass", "inconclusive"});
  fields.add("pass_alpha", &NewestSet::pass_alpha, "level of false passes").above(0).below(1);
  const auto percent = [](Field& field) { field.unit("%").at_least(0); };
  percent(fields.add("threshold_percent", &NewestSet::threshold_percent,
                     "least slowdown that is called a regression"));
  percent(fields.add("excluded_percent", &NewestSet::excluded_percent,
                     "mean slowdown that a pass excludes"));
  percent(fields.add("excluded_point_percent", &NewestSet::excluded_point_percent,
                     "slowdown of any one point that a pass excludes"));
  fields.add("since", &NewestSet::since, "label of the first set of the level before it").filled();
  fields.add("sets", &NewestSet::sets, "from that to the newest, which does not count").at_least(0);
  fields
      .add("slowdown_percent", &NewestSet::slowdown_percent,
           "100 (1 - exp(its mean log rate over the points - that of the level))")
      .unit("%");
  fields.add("interval_percent", &NewestSet::interval_percent, "its 95 % interval").unit("%");
  fields.add("p", &NewestSet::p, "one-sided, of the mean and all points together")
      .above(0)
      .at_most(1);
  percent(fields.add("detectable_percent", &NewestSet::detectable_percent,
                     "slowdown of the mean that is found in 80 % of cases"));
  fields.add("points", &NewestSet::points, "that were judged; the level is their base");
}

void HistoryDrift::describe(Fields& fields) {
  fields
      .add("change_percent", &HistoryDrift::change_percent,
           "from the first set to the last: Sen's slope")
      .unit("%");
  fields.add("p", &HistoryDrift::p, "Mann-Kendall").above(0).below(1);
}

void SetsNeeded::describe(Fields& fields) {
  fields.add("change_percent", &SetsNeeded::change_percent, "of a step").unit("%").above(0);
  fields.add("sets", &SetsNeeded::sets, "whose middle would show it").at_least(6);
}

}  // namespace record

void Comparison::describe(Fields& fields) {
  Envelope::describe(fields, "comparison", {"ok"});
  record::describe_metric<Comparison>(fields);
  fields.add("alpha", &Comparison::alpha, "level of all comparisons of a metric together")
      .above(0)
      .below(1);
  fields.add("power", &Comparison::power, "of the minimum detectable difference").above(0).below(1);
  fields.add("equivalent_percent", &Comparison::equivalent_percent, "margin of `--equivalent`")
      .unit("%")
      .above(0)
      .below(100)
      .since(3);
  record::describe_varied<Comparison>(fields);
  fields.add("base", &Comparison::base, "label of the base set").filled();
  fields.add("sets", &Comparison::sets, "the base first").size(2);
  record::describe_points<Comparison>(fields);
  fields.add("further", &Comparison::further, "the same of other metrics").since(3);
  fields.add("unmatched", &Comparison::unmatched, "points that a set lacks");
  record::describe_notes<Comparison>(fields);
}

void Verdict::describe(Fields& fields) {
  Envelope::describe(fields, "verdict");
  fields.add("verdict", &Verdict::verdict, "`regressed`, `pass` or `inconclusive`")
      .one_of({"regressed", "pass", "inconclusive"});
  fields.add("exit_code", &Verdict::exit_code, "of the gate: 1 regressed, 0 pass, 3 inconclusive")
      .one_of({0, 1, 3});
  fields.add("design", &Verdict::design, "what the gate was asked to keep to");
  fields.add("repeats", &Verdict::repeats, "pairs, or launches of each set").at_least(0);
  fields
      .add("slowdown_percent", &Verdict::slowdown_percent,
           "100 (1 - exp([winsorised mean](gate.md#why-this-statistic) over repeats of the mean "
           "over points of log(new / base)))")
      .unit("%");
  fields
      .add("interval_percent", &Verdict::interval_percent,
           "its 95 % interval; null below 5 repeats")
      .unit("%");
  fields.add("p", &Verdict::p, "one-sided; like the interval for a single decision")
      .above(0)
      .at_most(1);
  fields
      .add("detectable_percent", &Verdict::detectable_percent,
           "slowdown found with `power` in the end")
      .unit("%")
      .at_least(0);
  fields
      .add("repeats_for_pass", &Verdict::repeats_for_pass,
           "with which a build without slowdown would pass in 80 % of cases")
      .at_least(1)
      .since(3);
  fields.add("points", &Verdict::points, "that were judged").filled();
  record::describe_varied<Verdict>(fields);
  fields.add("sets", &Verdict::sets, "base and new").size(2, 2);
  fields.add("baseline", &Verdict::baseline, "of a baseline file that was the base");
  fields.add("launches", &Verdict::launches, "of a gate that launched builds");
  record::describe_notes<Verdict>(fields);
}

void HistoryResult::describe(Fields& fields) {
  Envelope::describe(fields, "history", {"ok"});
  fields.add("alpha", &HistoryResult::alpha, "level of false alarms").above(0).below(1);
  fields.add("points", &HistoryResult::points, "common to all sets").at_least(1);
  fields.add("sets", &HistoryResult::sets, "in the order of their commits").size(4);
  fields.add("changes", &HistoryResult::changes, "of level");
  fields.add("newest", &HistoryResult::newest, "whether the last set is slower").since(10);
  fields.add("drift", &HistoryResult::drift, "over all sets, where a line fits better than steps")
      .since(3);
  const auto percent = [](Field& field) { field.unit("%").at_least(0).since(3); };
  percent(fields.add("set_noise_percent", &HistoryResult::set_noise_percent,
                     "standard deviation of a set around its neighbours"));
  percent(fields.add("launch_noise_percent", &HistoryResult::launch_noise_percent,
                     "its standard error from the launches alone"));
  percent(fields.add("detectable_percent", &HistoryResult::detectable_percent,
                     "step in the middle of as many sets that is found in 80 % of series with "
                     "this noise"));
  fields.add("sets_needed", &HistoryResult::sets_needed, "what a step needs").since(3);
  record::describe_notes<HistoryResult>(fields);
}

}  // namespace scalemark
