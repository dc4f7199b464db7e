// Finds what in a record is worth a warning.
#include "result/warnings.hpp"

#include <fmt/format.h>

#include <cmath>

#include "record/read.hpp"
#include "result/noise_summary.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

template <typename Rank>
std::string straggler_warning(const std::vector<Rank>& ranks) {
  std::string list;
  for (const Rank& rank : ranks)
    if (rank.straggler == true)
      list += fmt::format("{}rank {} on {}", list.empty() ? "" : ", ", rank.rank, rank.host);
  return list.empty() ? "" : "slower than the others (straggler): " + list;
}

/// Returns the warning of --window_seconds, with what changed beside the drift.
std::string drift_warning(const Known<record::Windows>& windows) {
  if (!windows || !windows->drift) return "";
  const record::Drift& drift = *windows->drift;
  const bool slower = drift.verdict == "slower";
  if (!slower && drift.verdict != "faster") return "";
  std::string beside;
  for (const auto& [key, change] : drift.beside)
    beside += fmt::format("{}{} by {:+.2g} %", beside.empty() ? "; beside it changed " : ", ", key,
                          100 * change);
  return fmt::format("the throughput {} by {:.2g} % while it was measured{}{}",
                     slower ? "fell" : "rose", 100 * std::abs(drift.change), beside,
                     slower ? "" : "; more --num_warmup_batches leave the rise out");
}

/// Arrivals are random: few of them come at quite another rate than the one that is offered.
std::string few_arrivals_warning(const InferenceResult& inference) {
  constexpr double kOtherRate = 1.25;
  if (!inference.server || inference.server->ended_by != ServerEnd::all_served) return "";
  const record::Server& server = *inference.server;
  if (server.achieved_rate < kOtherRate * server.arrival_rate) return "";
  return fmt::format(
      "{} queries/s were answered, and {} offered: {} came too soon after one another to tell of "
      "that rate; more --num_batches do",
      four_digits(server.achieved_rate), four_digits(server.arrival_rate),
      server.queries_offered == 1 ? "the one" : fmt::format("the {}", server.queries_offered));
}

template <typename Run>
std::vector<std::string> warnings_of(const Run& run, const std::string& divergence) {
  NoiseSummary noise;
  noise.add(run);
  std::vector<std::string> all;
  add_warnings(all, {straggler_warning(run.ranks), divergence, drift_warning(run.windows),
                     preflight_warning(run.preflight)});
  add_warnings(all, noise.warnings());
  return all;
}

}  // namespace

std::string divergence_warning(const RunResult& run) {
  if (run.status != Status::ok || !run.loss || !run.loss->diverged) return "";
  return fmt::format(
      "the loss diverged (first {}, last {}): the throughput stands, but this training learns "
      "nothing; lower the learning rate, or set --lr_warmup_steps or --clip_norm",
      four_digits(run.loss->first.value_or(NAN)), four_digits(run.loss->last.value_or(NAN)));
}

std::string preflight_warning(const Known<record::PreflightReference>& preflight) {
  if (!preflight) return "";
  const auto& hosts = preflight->hosts_not_covered;
  std::string text;
  if (!preflight->verdict)
    text = "did not come to an end";
  else if (*preflight->verdict != "pass")
    text = fmt::format("has the verdict {}", *preflight->verdict);
  if (!hosts.empty()) {
    if (!text.empty()) text += " and ";
    text += "did not run on " + hosts[0];
    if (hosts.size() > 1) text += fmt::format(" and {} more", hosts.size() - 1);
  }
  if (text.empty()) return "";
  return fmt::format("preflight {} {}", preflight->id.substr(0, 8), text);
}

std::vector<std::string> run_warnings(const RunResult& run) {
  return warnings_of(run, divergence_warning(run));
}

std::vector<std::string> run_warnings(const InferenceResult& inference) {
  std::vector<std::string> all = warnings_of(inference, "");
  add_warnings(all, {few_arrivals_warning(inference)});
  return all;
}

void add_warnings(std::vector<std::string>& all, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    if (!warning.empty()) all.push_back(warning);
}

void add_warnings(Json& record, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    if (!warning.empty()) record["warnings"].push_back(warning);
}

}  // namespace scalemark
