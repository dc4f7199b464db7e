// Rules of records that are no curves and no runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/diagnosis/rules.hpp"
#include "streams.hpp"

namespace scalemark::diagnosis {
namespace {

/// A server holds its latency bound, or does not.
Findings server(const InferenceEvidence& of) {
  if (!of.holds) return {};
  const bool holds = *of.holds;
  const std::vector<std::string> tries{
      holds ? "a higher rate; without --arrival_rate the largest is searched for"
            : "a lower rate, more ranks, a smaller --batch_size or --max_queue_delay_ms, bf16 or "
              "int8"};
  return {{"server", holds ? Tone::good : Tone::bad, of.name,
           Sentence(holds ? "Holds its latency bound at " : "Does not hold its latency bound at ",
                    quoted(of.arrival_rate), " queries/s."),
           Sentence("The quantile ", quoted(of.quantile), " came to ",
                    quoted(of.at_quantile_seconds, milliseconds), ", the bound is ",
                    quoted(of.bound_seconds, milliseconds), ".",
                    of.overload ? " The queue grew without end." : ""),
           tries, Certainty::likely, "one measurement"}};
}

/// The slowest percent of queries takes three times the median or more.
Findings tail(const InferenceEvidence& of) {
  if (!of.p50 || !of.p99 || !(*of.p50 > 0) || *of.p99 <= kTail * *of.p50) return {};
  return {{"tail",
           Tone::note,
           of.name,
           Sentence("A long tail: some queries take far longer than most."),
           Sentence("Median ", quoted(of.p50, milliseconds), ", 99 % within ",
                    quoted(of.p99, milliseconds), "."),
           {"foreign load, clocks and binding (scalemark preflight); of a server the queue: "
            "server.queue_seconds"},
           Certainty::hint,
           "quantiles of one run"}};
}

/// All points with a verdict, told by the one that differs most.
Findings compared_as(const ComparisonEvidence& of, const std::string& verdict, Tone tone) {
  using Point = ComparisonEvidence::Point;
  std::vector<const Point*> points;
  for (const Point& point : of.points)
    if (point.verdict == verdict) points.push_back(&point);
  if (points.empty()) return {};
  const Point& most = **std::ranges::max_element(points, {}, [](const Point* point) {
    return std::abs(point->difference_percent.value.value_or(0));
  });
  return {{"compared",
           tone,
           most.set.value.value_or("") + " against " + of.base,
           Sentence(quoted(most.set), fmt::format(" is {} at {} of {} points.", verdict,
                                                  points.size(), of.points.size())),
           Sentence("Most at ", quoted_ranks(most.ranks), ": ",
                    quoted(most.difference_percent, signed_percent), ", interval ",
                    quoted(most.interval_percent, signed_percent), ", p ",
                    quoted(most.p_adjusted, probability), " (Holm)."),
           {},
           Certainty::sure,
           "the test shows it at the level of all points together"}};
}

Findings too_few(const ComparisonEvidence& of) {
  const auto few = [](const ComparisonEvidence::Point& point) {
    return point.verdict == "too few launches";
  };
  const auto first = std::ranges::find_if(of.points, few);
  if (first == of.points.end()) return {};
  return {{"compared",
           Tone::note,
           of.base,
           Sentence(fmt::format("Too few launches to compare at {} points.",
                                std::ranges::count_if(of.points, few))),
           Sentence("There are ", quoted(first->repeats, whole), " repeats, ",
                    quoted(first->repeats_needed, whole), " are needed."),
           {"more repeats: scalemark sweep with \"repeats\": 7"},
           Certainty::sure,
           "by the number of launches that the test needs"}};
}

void append_all(Findings& findings, const Findings& more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

}  // namespace

Findings inference_findings(const InferenceEvidence& inference) {
  Findings findings = server(inference);
  append_all(findings, tail(inference));
  return findings;
}

/// Jobs side by side lose more than 5 % to each other, or do not.
Findings instances_findings(const InstancesEvidence& of) {
  if (of.points.empty()) return {};
  const auto& last = of.points.back();
  if (!last.instances || *last.instances <= 1) return {};
  const double lost = 1 - *last.efficiency;
  const bool bad = lost > kWorthAWord;
  const Sentence jobs(quoted(last.instances, whole), " jobs side by side lose ");
  Finding finding{"neighbours",      bad ? Tone::bad : Tone::good,         of.name, {}, {}, {},
                  Certainty::likely, "mean over repeats in fresh launches"};
  finding.what =
      bad ? Sentence("Neighbours: ", jobs, computed("lost", lost, percent, last.efficiency), ".")
          : Sentence(jobs, "next to nothing to each other.");
  finding.why = Sentence("Efficiency ", quoted(last.efficiency, percent), ", together ",
                         quoted(last.cumulative), " " + of.unit + ".");
  if (bad) finding.tries = {"slots that share less: another socket, NUMA node or GPU (--slots)"};
  return {finding};
}

/// What a comparison found, point by point.
Findings comparison_findings(const ComparisonEvidence& comparison) {
  Findings findings = compared_as(comparison, "slower", Tone::bad);
  append_all(findings, compared_as(comparison, "faster", Tone::good));
  append_all(findings, too_few(comparison));
  return findings;
}

/// The verdict of a gate.
Findings gate_findings(const GateEvidence& of) {
  Finding finding{"gate", Tone::note, of.name,         {},
                  {},     {},         Certainty::sure, "the gate's own levels of error hold"};
  if (of.verdict == "regressed") {
    finding.tone = Tone::bad;
    finding.what = Sentence("The gate: the new build is slower.");
  } else if (of.verdict == "pass") {
    finding.tone = Tone::good;
    finding.what = Sentence("The gate passes: no slowdown of note.");
  } else if (of.verdict == "inconclusive") {
    finding.what = Sentence("The gate is inconclusive.");
    finding.tries = {"more pairs (--pairs)"};
  } else {
    return {};
  }
  finding.why = Sentence("Slowdown ", quoted(of.slowdown_percent, signed_percent),
                         ", 95 % interval ", quoted(of.interval_percent, signed_percent), ", ",
                         quoted(of.repeats, whole), " pairs or launches.");
  return {finding};
}

/// The newest of a row of sets, where it is slower, and changes of level before it.
Findings history_findings(const HistoryEvidence& of) {
  constexpr std::size_t kMostChanges = 5;
  Findings findings;
  if (of.newest_verdict == "regressed")
    findings.push_back({"history",
                        Tone::bad,
                        of.name,
                        Sentence("History: the newest set, ", quoted(of.newest), ", is slower."),
                        Sentence("Slowdown ", quoted(of.slowdown_percent, signed_percent), ", p ",
                                 quoted(of.p, probability), "."),
                        {"scalemark gate between this build and the one before"},
                        Certainty::likely,
                        "shown at the level of the history; its cause is not"});
  for (const HistoryEvidence::Change& change : of.changes) {
    if (findings.size() == kMostChanges) break;
    findings.push_back(
        {"history",
         change.change_percent.value.value_or(0) < 0 ? Tone::bad : Tone::note,
         of.name,
         Sentence("History: a " + change.kind + " at ", quoted(change.at),
                  change.point.value ? Sentence(" of ", quoted(change.point)) : Sentence(), "."),
         Sentence(quoted(change.change_percent, signed_percent), ", p ",
                  quoted(change.p, probability), "."),
         {"scalemark gate between the two builds: a change of the machine looks "
          "the same"},
         Certainty::likely,
         "shown at the level of the history; its cause is not"});
  }
  return findings;
}

/// How well the model predicted points that it had not seen.
Findings projection_findings(const ProjectionEvidence& of) {
  if (!of.unseen || *of.unseen <= 0 || !of.in_band) return {};
  const bool good = *of.in_band == *of.unseen;
  const auto plain_percent = [](double value) { return fmt::format("{:.1f} %", value); };
  Finding finding{"projected",       good ? Tone::note : Tone::bad, of.name, {}, {}, {},
                  Certainty::likely, "tested on this curve alone"};
  finding.what =
      Sentence(good ? "The projection held on points that it had not seen."
                    : "The projection missed points that it had not seen: do not lean on it.");
  finding.why = Sentence("Mean error ", quoted(of.error_percent, plain_percent), "; in the band ",
                         quoted(of.in_band, whole), " of ", quoted(of.unseen, whole), ".");
  if (!good) finding.tries = {"fit more rank counts: scalemark scale --ranks"};
  return {finding};
}

namespace {

/// "n0 - n2" is the link between two nodes, of which neither is shown to be at fault.
bool is_link(const std::string& place) { return place.find(" - ") != place.npos; }

/// Returns the places of failed checks, nodes before links, the one with most of them first.
std::vector<std::string> worst_places(const PreflightEvidence& of) {
  std::map<std::string, int> count;
  for (const PreflightEvidence::Check& check : of.failed)
    if (!check.host.empty()) ++count[check.host];
  std::vector<std::string> places;
  for (const auto& [place, failed] : count) places.push_back(place);
  std::ranges::stable_sort(places, {}, [&](const std::string& place) {
    return std::pair(is_link(place), -count.at(place));
  });
  return places;
}

std::string places_words(const std::vector<std::string>& places) {
  constexpr std::size_t kMostPlaces = 6;
  std::string nodes, links;
  for (std::size_t i = 0; i < std::min(places.size(), kMostPlaces); ++i) {
    std::string& list = is_link(places[i]) ? links : nodes;
    list += (list.empty() ? "" : ", ") + places[i];
  }
  return (nodes.empty() ? "" : " on " + nodes) + (links.empty() ? "" : " between " + links);
}

/// What other processes did meanwhile looks like a slow node.
bool is_of_busy_node(const PreflightEvidence::Check& check) {
  return check.message.value.value_or("").starts_with("other processes used ");
}

std::string preflight_try(const std::vector<std::string>& places, bool busy) {
  if (busy) return "measure again without other load: a node that is busy is not broken";
  if (!places.empty() && is_link(places.front()))
    return "look at the way between these two: each of them is as fast with others";
  return "mend or leave out these nodes before measuring on them";
}

}  // namespace

/// Checks that failed, of nodes or of what is between two.
Findings preflight_findings(const PreflightEvidence& of) {
  if (of.failed.empty()) return {};
  const std::vector<std::string> places = worst_places(of);
  const bool busy = std::ranges::all_of(of.failed, is_of_busy_node);
  const auto first = std::ranges::find(of.failed, places.empty() ? "" : places.front(),
                                       &PreflightEvidence::Check::host);
  return {{"preflight",
           busy ? Tone::note : Tone::bad,
           "preflight",
           Sentence(fmt::format("Preflight failed: {}{}.", counted(of.failed.size(), "check"),
                                places_words(places))),
           Sentence(quoted(first->message), "."),
           {preflight_try(places, busy)},
           busy ? Certainty::hint : Certainty::sure,
           busy ? "other processes were at work meanwhile" : "measured against its rules"}};
}

/// Whether a published effect shows here.
Findings study_findings(const StudyEvidence& of) {
  if (of.judged.empty()) return {};
  constexpr std::size_t kMostNamed = 3;
  Sentence why;
  std::size_t shown = 0, named = 0;
  bool opposite = false;
  for (const StudyEvidence::Figure& figure : of.judged) {
    opposite = opposite || figure.verdict == "opposite";
    if (figure.verdict == "shown")
      ++shown;
    else if (named++ < kMostNamed)
      why.add(Sentence("; ", quoted(figure.name), ": " + figure.verdict));
  }
  const bool all = shown == of.judged.size();
  const bool of_effect = of.evidence != kStandIn;
  Finding finding{"study",
                  all && of_effect ? Tone::good
                  : opposite       ? Tone::bad
                                   : Tone::note,
                  of.name,
                  {},
                  {},
                  {},
                  all && of_effect ? Certainty::sure : Certainty::hint,
                  of.evidence + ", at this size"};
  finding.what = Sentence((!all        ? "Not every published effect shows: "
                           : of_effect ? "The published effect shows: "
                                       : "The published direction shows, of a stand-in: ") +
                          of.title + ".");
  finding.why = Sentence(fmt::format("{} of {} figures are as expected, whole interval included",
                                     shown, of.judged.size()),
                         why, ".");
  if (!all) finding.tries = {"more repeats, a quieter machine, the full profile"};
  return {finding};
}

}  // namespace scalemark::diagnosis
