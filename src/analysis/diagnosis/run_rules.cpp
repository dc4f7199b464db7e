// Rules of runs: what one of them says, and what many say together.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/diagnosis/rules.hpp"

namespace scalemark::diagnosis {
namespace {

constexpr std::size_t kMost = 5;  ///< findings of one rule

/// A rank in a run.
struct Seen {
  const RunEvidence* run;
  const RankEvidence* rank;
};

std::optional<double> own_seconds(const RankEvidence& rank) {
  if (!rank.step_seconds || !rank.wait_seconds) return std::nullopt;
  return *rank.step_seconds - *rank.wait_seconds;
}

/// Where all ranks tell their times.
const RankEvidence* fastest_rank(const RunEvidence& run) {
  const RankEvidence* fastest = nullptr;
  for (const RankEvidence& rank : run.ranks) {
    const auto own = own_seconds(rank);
    if (!own) return nullptr;
    if (!fastest || *own < *own_seconds(*fastest)) fastest = &rank;
  }
  return fastest;
}

Sentence straggler_times(const Seen& seen) {
  const RankEvidence* fastest = fastest_rank(*seen.run);
  if (!fastest) return {};
  const auto own = [](const RankEvidence& rank) {
    return computed("compute_seconds", *own_seconds(rank), milliseconds, rank.step_seconds);
  };
  return Sentence("It computes ", own(*seen.rank), " a step, the fastest rank ", own(*fastest));
}

bool is_beside_others(const Seen& seen) { return bool(seen.run->foreign_cpus); }

/// What other processes did meanwhile looks like a slow rank.
Finding excused(Finding finding, const Seen& seen) {
  finding.tone = Tone::note;
  finding.what = Sentence("Rank ", quoted(seen.rank->rank, whole), " on ", quoted(seen.rank->host),
                          " was slower than the others, beside other processes.");
  finding.why.add(Sentence(" Others used ", quoted(seen.run->foreign_cpus), " CPUs meanwhile."));
  finding.tries = {"measure again on a quiet machine (--wait_for_idle)"};
  finding.sure = Certainty::hint;
  finding.because = "other processes were at work meanwhile";
  return finding;
}

Finding straggler_finding(const std::vector<Seen>& seen, std::size_t runs,
                          const std::string& about) {
  const RankEvidence& rank = *seen.front().rank;
  Sentence why = straggler_times(seen.front());
  if (runs > 1 || why.empty())
    why.add(fmt::format("{} {} of {} run{} with several ranks", why.empty() ? "In" : "; in",
                        seen.size(), runs, runs == 1 ? "" : "s"));
  const bool several = seen.size() > 1;
  const Finding finding{
      "straggler",
      Tone::bad,
      about.empty() ? seen.front().run->name : about,
      Sentence("A straggler: rank ", quoted(rank.rank, whole), " on ", quoted(rank.host),
               " holds the others up."),
      Sentence(why, "."),
      {"scalemark preflight on that host; look for foreign load, throttling and its binding",
       "leave the host out and measure again"},
      several ? Certainty::likely : Certainty::hint,
      several ? "in several runs" : "in one run"};
  return std::ranges::all_of(seen, is_beside_others) ? excused(finding, seen.front()) : finding;
}

/// A place of a rank.
using Place = std::pair<std::string, double>;

Place place_of(const RankEvidence& rank) {
  return {rank.host.value.value_or(""), rank.rank.value.value_or(-1)};
}

/// Whether every rank that some run has is slower than the others in some run, none of them far
/// more often than another.
bool take_turns(const std::map<Place, std::vector<Seen>>& slow,
                const std::vector<RunEvidence>& runs) {
  constexpr std::size_t kFarMoreOften = 3;
  if (slow.size() < 2) return false;
  const auto often = [](const auto& of) { return of.second.size(); };
  const auto [least, most] = std::ranges::minmax_element(slow, {}, often);
  if (often(*most) >= kFarMoreOften * often(*least)) return false;
  for (const RunEvidence& run : runs)
    for (const RankEvidence& rank : run.ranks)
      if (run.world_size && *run.world_size > 1 && !slow.contains(place_of(rank))) return false;
  return true;
}

Finding turns_finding(const std::vector<Seen>& first, std::size_t ranks, std::size_t runs,
                      const std::string& about) {
  return {"straggler",
          Tone::note,
          about.empty() ? first.front().run->name : about,
          Sentence("Ranks take turns at being slower than the others: noise, no straggler."),
          Sentence(fmt::format("Each of {} ranks is it in some of {} runs; rank ", ranks, runs),
                   quoted(first.front().rank->rank, whole), " on ",
                   quoted(first.front().rank->host), fmt::format(" in {}.", first.size())),
          {"a quiet machine (--wait_for_idle), more and longer runs"},
          Certainty::likely,
          "no rank alone is slow"};
}

/// What takes a share of a step.
struct PhaseRule {
  const char* rule;
  Number RunEvidence::*share;
  const char* what;
  std::vector<std::string> tries;
};

const std::vector<PhaseRule>& phase_rules() {
  static const std::vector<PhaseRule> rules{
      {"input",
       &RunEvidence::input_share,
       "Input: ranks wait for their batches.",
       {"--input device keeps batches where they are used",
        "faster copies: binding near the GPU, fewer ranks a node"}},
      {"checkpoint",
       &RunEvidence::checkpoint_share,
       "Checkpoints take a noticeable part of the time.",
       {"a larger --checkpoint_every, faster storage, or without --shard "
        "--checkpoint_writers node"}}};
  return rules;
}

/// More than 5 % of a step: the run where it is most.
Findings phase_findings(const std::vector<const RunEvidence*>& runs, const PhaseRule& rule) {
  const auto share = [&](const RunEvidence* run) { return ((*run).*rule.share).value.value_or(0); };
  const auto above =
      std::ranges::count_if(runs, [&](const RunEvidence* run) { return share(run) > kWorthAWord; });
  if (above == 0) return {};
  const RunEvidence& worst = **std::ranges::max_element(runs, {}, share);
  const std::string often =
      runs.size() == 1 ? "" : fmt::format("; above 5 % in {} of {} runs", above, runs.size());
  return {{rule.rule, Tone::bad, worst.name, Sentence(rule.what),
           Sentence(quoted(worst.*rule.share, percent), " of a step" + often + "."), rule.tries,
           Certainty::likely, "measured within the step"}};
}

/// The throughput changed while a run went on.
Findings drift(const RunEvidence& run) {
  const DriftEvidence& drift = run.drift;
  if (drift.verdict != "slower" && drift.verdict != "faster") return {};
  return {{"drift",
           Tone::bad,
           run.name,
           Sentence("The run became " + drift.verdict + " while it went on."),
           Sentence("By ", quoted(drift.change, percent),
                    " from its first to its last third, 95 % interval ",
                    quoted(drift.ci95, percent), ", p ", quoted(drift.p, probability), "."),
           {"clocks and temperatures of its windows; other load; a longer warm-up"},
           Certainty::sure,
           "p at most 0.01"}};
}

/// The loss went up for good.
Findings diverged(const RunEvidence& run) {
  if (!run.diverged) return {};
  return {{"diverged",
           Tone::bad,
           run.name,
           Sentence("The loss diverged: this run trains nothing."),
           Sentence("From ", quoted(run.first_loss), " to ", quoted(run.last_loss), "."),
           {"a smaller --init_learning_rate or a warm-up; with fp16 look at the loss scale"},
           Certainty::sure,
           "above 10 times the noise of its best level"}};
}

}  // namespace

Findings straggler_findings(const std::vector<RunEvidence>& runs, const std::string& about) {
  std::size_t together = 0;
  std::map<Place, std::vector<Seen>> by_rank;
  std::vector<const std::vector<Seen>*> found;  // in the order of their first runs
  for (const RunEvidence& run : runs) {
    if (!run.world_size || *run.world_size <= 1) continue;
    ++together;
    for (const RankEvidence& rank : run.ranks) {
      if (!rank.straggler) continue;
      auto& seen = by_rank[place_of(rank)];
      if (seen.empty()) found.push_back(&seen);
      seen.push_back({&run, &rank});
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater(), [](auto* seen) { return seen->size(); });
  if (take_turns(by_rank, runs))
    return {turns_finding(*found.front(), by_rank.size(), together, about)};
  Findings findings;
  for (const auto* seen : found)
    if (findings.size() < kMost) findings.push_back(straggler_finding(*seen, together, about));
  return findings;
}

Findings runs_findings(const std::vector<RunEvidence>& runs) {
  std::vector<const RunEvidence*> complete;
  for (const RunEvidence& run : runs)
    if (run.ok) complete.push_back(&run);
  Findings findings;
  for (const PhaseRule& rule : phase_rules())
    for (const Finding& finding : phase_findings(complete, rule)) findings.push_back(finding);
  for (const auto rule : {drift, diverged}) {
    const std::size_t most = findings.size() + kMost;
    for (const RunEvidence* run : complete)
      for (const Finding& finding : rule(*run))
        if (findings.size() < most) findings.push_back(finding);
  }
  return findings;
}

Findings run_findings(const RunEvidence& run) {
  Findings findings = straggler_findings({run});
  for (const Finding& finding : runs_findings({run})) findings.push_back(finding);
  return findings;
}

}  // namespace scalemark::diagnosis
