// Rules of a curve: its verdict at the most ranks, and the reasons.
#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/diagnosis/rules.hpp"

namespace scalemark::diagnosis {
namespace {

using Surety = std::pair<Certainty, std::string>;

/// `shown`: whether an interval excludes the other answer.
Surety surety_of(const CurveEvidence& curve, bool shown) {
  if (!shown) return {Certainty::hint, "no interval excludes the opposite"};
  if (curve.of_launches)
    return {Certainty::sure, "the interval over fresh launches excludes the opposite"};
  return {Certainty::likely,
          "the interval excludes the opposite, but over repeats of one launch: other launches may "
          "differ"};
}

/// A curve of at least two points, as all rules of this file need it.
struct Ends {
  const PointEvidence &base, &last;
};

/// Returns the run of middle throughput of a point: its numbers are those of one record.
const RunEvidence* middle_run(const PointEvidence& point) {
  std::vector<const RunEvidence*> runs;
  for (const RunEvidence& run : point.runs)
    if (run.throughput && *run.throughput > 0) runs.push_back(&run);
  if (runs.empty()) return nullptr;
  std::ranges::stable_sort(runs, {}, [](const RunEvidence* run) { return *run->throughput; });
  return runs[(runs.size() - 1) / 2];
}

/// What communication adds to a step: against the baseline, else the waiting of the middle run.
std::optional<Quote> exposed_share(const PointEvidence& point) {
  constexpr const char* kName = "exposed_share";
  if (point.baseline_throughput && *point.baseline_throughput > 0)
    return computed(kName, 1 - *point.throughput / *point.baseline_throughput, percent,
                    point.baseline_throughput);
  const RunEvidence* run = middle_run(point);
  if (!run || !run->step_seconds || *run->step_seconds <= 0 || !point.exposed_seconds)
    return std::nullopt;
  return computed(kName, *point.exposed_seconds / *run->step_seconds, percent,
                  point.exposed_seconds);
}

bool is_exposed(const PointEvidence& point) {
  const auto share = exposed_share(point);
  return share && std::get<double>(share->value) > kWorthAWord;
}

/// Is the efficiency of the largest point 90 % or more? `reasons`: whether other rules say why not.
Findings scales(const CurveEvidence& curve, const Ends& ends, bool reasons) {
  const PointEvidence& last = ends.last;
  if (!last.efficiency) return {};
  const bool good = *last.efficiency >= kGoodEfficiency;
  const auto& interval = last.efficiency_ci95;
  const bool shown =
      interval && (good ? (*interval).lo >= kGoodEfficiency : (*interval).hi < kGoodEfficiency);
  const auto [sure, because] = surety_of(curve, shown);
  const Sentence ranks = quoted_ranks(last.ranks);
  Finding finding{"scales", good ? Tone::good : Tone::bad, curve.name, {}, {}, {}, sure, because};
  finding.why = Sentence("Speedup ", quoted(last.speedup), " at ", ranks, "; efficiency ",
                         quoted(last.efficiency, percent));
  if (interval) finding.why.add(Sentence(", 95 % interval ", quoted(interval, percent)));
  finding.why.add(".");
  if (!shown) {
    finding.tone = Tone::note;
    finding.what = Sentence(good ? "May scale to " : "May not scale to ", ranks,
                            ": 90 % efficiency is neither shown nor excluded.");
    finding.tries = {"more repeats (--repeats 5), longer runs, a quieter machine"};
  } else if (good) {
    finding.what = Sentence("Scales to ", ranks, ".");
    finding.tries = {"measure more ranks, or see what scalemark project predicts for them"};
  } else {
    finding.what = Sentence("Does not scale well to ", ranks, ": ",
                            computed("lost", 1 - *last.efficiency, percent, last.efficiency),
                            " of the ideal is lost.");
    if (!reasons)
      finding.tries = {
          "a baseline on the same ranks tells communication from computing: scalemark scale"};
  }
  return {finding};
}

using Collectives = std::vector<CollectiveEvidence>;

/// Returns the collective that adds more to a step than each other one, beyond the intervals of
/// both; null where none is shown to.
const CollectiveEvidence* limit_of(const Collectives& collectives) {
  if (collectives.empty()) return nullptr;
  const auto most = std::ranges::max_element(
      collectives, {}, [](const CollectiveEvidence& one) { return *one.exposed_seconds; });
  for (const CollectiveEvidence& other : collectives)
    if (&other != &*most && !(most->exposed_ci95 && other.exposed_ci95 &&
                              (*most->exposed_ci95).lo > (*other.exposed_ci95).hi))
      return nullptr;
  return &*most;
}

std::string collective_words(const std::string& collective) {
  if (collective == "allgather") return "the all-gather of weights";
  if (collective == "reduce_scatter") return "the reduce-scatter of gradients";
  return "the allreduce between groups";
}

/// Says what each collective adds by itself; empty where that was not measured.
Sentence by_collective(const Collectives& collectives) {
  Sentence text;
  for (const CollectiveEvidence& one : collectives) {
    text.add(text.empty() ? " Of it, as steps without it tell, " : ", ");
    text.add(Sentence(collective_words(one.collective), " adds ",
                      quoted(one.exposed_seconds, milliseconds)));
    if (one.exposed_ci95) text.add(Sentence(" (", quoted(one.exposed_ci95, milliseconds), ")"));
  }
  if (text.empty()) return text;
  text.add(limit_of(collectives) ? "." : "; none is shown to add more than another.");
  return text;
}

std::vector<std::string> against_a_slow_link(const CurveEvidence& curve,
                                             const CollectiveEvidence* limit) {
  std::vector<std::string> tries;
  if (limit && limit->collective == "allgather" && curve.shard == "parameters")
    tries.emplace_back(
        "gather weights once a step in place of twice, where the memory suffices: --shard "
        "gradients (--dry_run says whether)");
  if (curve.wire_dtype.empty() || curve.wire_dtype == "fp32")
    tries.emplace_back("send half the bytes: --wire_dtype bf16");
  if (curve.overlap == "none")
    tries.emplace_back("hide it behind the backward pass: --overlap backward");
  tries.emplace_back(
      "a faster link or transport (configs/sweeps/transport.json); scalemark project --link_gbit "
      "says what it would bring");
  tries.emplace_back("more samples per rank between exchanges: --batch_size, --micro_batch_size");
  return tries;
}

/// Leaving communication out costs no time, so such a baseline was disturbed.
bool has_slow_baseline(const PointEvidence& point) {
  return point.baseline_throughput &&
         *point.baseline_throughput < (1 - kWorthAWord) * *point.throughput;
}

/// The baseline is slower than what it is the baseline of.
Findings slow_baseline(const CurveEvidence& curve, const Ends& ends) {
  const PointEvidence& last = ends.last;
  if (!has_slow_baseline(last)) return {};
  return {{"baseline",
           Tone::note,
           curve.name,
           Sentence("The baseline at ", quoted_ranks(last.ranks),
                    " is slower than the measurement: noise or foreign load."),
           Sentence("Without communication ", quoted(last.baseline_throughput), ", with it ",
                    quoted(last.throughput), " " + curve.unit + "."),
           {"measure again with more repeats (--repeats 5) on a quiet machine (--wait_for_idle)"},
           Certainty::sure,
           "leaving communication out costs no time"}};
}

std::string waited_for(const CurveEvidence& curve, const CollectiveEvidence* limit) {
  if (limit) return collective_words(limit->collective);
  return curve.shard.empty() || curve.shard == "none" ? "gradients" : "gradients and weights";
}

/// Communication that is not hidden takes more than 5 % of the step.
Findings link(const CurveEvidence& curve, const Ends& ends) {
  const PointEvidence& last = ends.last;
  if (!is_exposed(last)) return {};
  const bool shown = last.exposed_ci95 ? (*last.exposed_ci95).lo > 0
                                       : last.ci95 && last.baseline_throughput &&
                                             (*last.ci95).hi < *last.baseline_throughput;
  const bool open = last.exposed_ci95 && (*last.exposed_ci95).lo <= 0;
  const auto [sure, because] = surety_of(curve, shown);
  Sentence why("Exposed communication: ", quoted(last.exposed_seconds, milliseconds), " a step");
  if (last.exposed_ci95)
    why.add(Sentence(" (95 % interval ", quoted(last.exposed_ci95, milliseconds), ")"));
  why.add(Sentence(", ", *exposed_share(last), " of it, at ", quoted_ranks(last.ranks), "."));
  why.add(by_collective(last.collectives));
  const CollectiveEvidence* const limit = limit_of(last.collectives);
  return {{"link", open ? Tone::note : Tone::bad, curve.name,
           Sentence("The link: ranks ", open ? "may wait" : "wait", " for ",
                    waited_for(curve, limit), open ? "; the interval includes 0." : "."),
           why, against_a_slow_link(curve, limit), sure, because}};
}

/// Communication lasts longer than the computing that could hide it.
Findings small_batch(const CurveEvidence& curve, const Ends& ends) {
  const RunEvidence* run = middle_run(ends.last);
  if (!run || !is_exposed(ends.last)) return {};
  if (!run->communication_seconds || !run->step_seconds || !run->exposed_seconds) return {};
  if (*run->communication_seconds <= *run->step_seconds - *run->exposed_seconds) return {};
  return {{"small_batch",
           Tone::bad,
           curve.name,
           Sentence("Small batch: too little computing between two exchanges to hide them."),
           Sentence("Communication takes ", quoted(run->communication_seconds, milliseconds),
                    " of a step of ", quoted(run->step_seconds, milliseconds), ", with ",
                    quoted(run->batch_size_per_rank, whole), " samples per rank."),
           {"a larger --batch_size, or accumulate gradients over micro-batches "
            "(--micro_batch_size)",
            "fewer bytes: --wire_dtype bf16"},
           Certainty::likely,
           "from the times of one run"}};
}

/// Finds that a rank of many computes more slowly than one of few, communication left out.
Findings of_computing(const CurveEvidence& curve, const Ends& ends, Finding finding) {
  const auto& [base, last] = ends;
  if (!last.baseline_throughput || !base.resources || !last.resources) return {};
  if (has_slow_baseline(last)) return {};
  const double ratio = *last.resources / *base.resources;
  const double kept = *last.baseline_throughput / *base.throughput / ratio;
  if (!(ratio > 1) || !(kept < 1 - kWorthAWord)) return {};
  const bool lost = last.efficiency_ci95 && (*last.efficiency_ci95).hi < 1;
  finding.sure = lost ? Certainty::likely : Certainty::hint;
  finding.because =
      lost ? "the efficiency is shown to be below 100 %; the share of this cause has no interval"
           : "from throughputs without an interval of their ratio";
  finding.about = curve.name;
  finding.tone = Tone::bad;
  finding.why = Sentence("Without communication ", quoted_ranks(last.ranks), " reach ",
                         quoted(last.baseline_throughput), " " + curve.unit + ", ",
                         computed("kept", kept, percent, last.baseline_throughput), " of what ",
                         quoted_ranks(base.ranks), " alone would come to.");
  return {finding};
}

/// In strong scaling ranks compute less efficiently with a smaller share of the batch.
Findings small_share(const CurveEvidence& curve, const Ends& ends) {
  if (curve.scaling != "strong") return {};
  Finding finding{.rule = "small_share"};
  finding.what = Sentence("Small batch per rank: it computes less efficiently than the whole.");
  finding.tries = {"a larger --global_batch_size",
                   "fewer ranks: the efficiency table shows where it stops to pay"};
  return of_computing(curve, ends, finding);
}

/// In weak scaling ranks slow each other down: memory, caches, clocks, cores.
Findings host(const CurveEvidence& curve, const Ends& ends) {
  if (curve.scaling != "weak") return {};
  Finding finding{.rule = "host"};
  finding.what = Sentence("The host: ranks slow each other down even without communication.");
  finding.tries = {
      "more cores or memory bandwidth per rank: fewer ranks a node (--ranks_per_node), other "
      "--num_intra_threads",
      "binding and clocks: scalemark preflight, configs/sweeps/binding.json",
      "scalemark instances measures what independent neighbours cost"};
  return of_computing(curve, ends, finding);
}

/// A point lies below the line between its neighbours.
Findings dip(const CurveEvidence& curve, const Ends&) {
  Findings findings;
  for (const PointEvidence& point : curve.points) {
    if (!point.dip) continue;
    const auto [sure, because] = surety_of(curve, bool(point.efficiency_ci95));
    findings.push_back(
        {"dip",
         Tone::bad,
         curve.name,
         Sentence("A dip at ", quoted_ranks(point.ranks), ": worse than both neighbours suggest."),
         Sentence("Efficiency ", quoted(point.efficiency, percent), ", expected ",
                  quoted(point.expected_efficiency, percent), "."),
         {"look at the placement of that point: ranks across sockets or nodes, another algorithm "
          "of the allreduce"},
         sure,
         because});
  }
  return findings;
}

/// More than ideal, shown: the base is what was slow.
Findings better_than_ideal(const CurveEvidence& curve, const Ends& ends) {
  const PointEvidence& last = ends.last;
  if (!last.efficiency_ci95 || (*last.efficiency_ci95).lo <= 1 + kWorthAWord) return {};
  return {{"better_than_ideal",
           Tone::note,
           curve.name,
           Sentence("More than ideal at ", quoted_ranks(last.ranks), ": look at the base."),
           Sentence("Efficiency ", quoted(last.efficiency, percent), ", 95 % interval ",
                    quoted(last.efficiency_ci95, percent), "."),
           {"the smallest point may have been disturbed, or its batch does not fit a cache that "
            "smaller shares fit: measure again with --repeats 5"},
           Certainty::likely,
           "the interval is above 105 %"}};
}

/// Half the interval, as a share of the throughput; 0 where there is none.
double width(const PointEvidence& point) {
  if (!point.ci95 || !(*point.throughput > 0)) return 0;
  return ((*point.ci95).hi - (*point.ci95).lo) / 2 / *point.throughput;
}

/// An interval is so wide that the point says little.
Findings noise(const CurveEvidence& curve, const Ends&) {
  const PointEvidence& widest = *std::ranges::max_element(curve.points, {}, width);
  if (width(widest) <= kWide) return {};
  return {{"noise",
           Tone::note,
           curve.name,
           Sentence("Noise: repeats differ so much that small differences are not shown."),
           Sentence("At ", quoted_ranks(widest.ranks), " ", quoted(widest.throughput),
                    " " + curve.unit + ", 95 % interval ", quoted(widest.ci95), "."),
           {"more and longer repeats (--repeats 5, --num_batches), a quiet machine "
            "(--wait_for_idle); docs/reducing_variance.md"},
           Certainty::sure,
           "the interval is wider than 10 % to each side"}};
}

void append(Findings& findings, const Findings& more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

}  // namespace

Findings curve_findings(const CurveEvidence& curve) {
  if (curve.points.size() < 2) return {};
  const Ends ends{curve.points.front(), curve.points.back()};
  Findings reasons;
  for (const auto rule : {link, small_batch, small_share, host}) append(reasons, rule(curve, ends));
  append(reasons, straggler_findings(ends.last.runs, curve.name));
  Findings findings = scales(curve, ends, !reasons.empty());
  append(findings, reasons);
  for (const auto rule : {slow_baseline, dip, better_than_ideal, noise})
    append(findings, rule(curve, ends));
  return findings;
}

}  // namespace scalemark::diagnosis
