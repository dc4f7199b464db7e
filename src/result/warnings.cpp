// See warnings.hpp.
#include "result/warnings.hpp"

#include <fmt/format.h>

#include <cmath>

#include "result/noise_summary.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::string straggler_warning(const Json& record) {
  std::string list;
  for (const Json& rank : record.at("ranks"))
    if (rank.at("straggler") == true)
      list += fmt::format("{}rank {} on {}", list.empty() ? "" : ", ", rank.at("rank").dump(),
                          rank.at("host").get<std::string>());
  return list.empty() ? "" : "slower than the others (straggler): " + list;
}

/// Of --window_seconds: with what changed beside it.
std::string drift_warning(const Json& record) {
  const Json drift = record.value("/windows/drift"_json_pointer, Json());
  if (!drift.is_object()) return "";
  const bool slower = drift.at("verdict") == "slower";
  if (!slower && drift.at("verdict") != "faster") return "";
  std::string beside;
  for (const auto& [key, change] : drift.at("beside").items())
    beside += fmt::format("{}{} by {:+.2g} %", beside.empty() ? "; beside it changed " : ", ", key,
                          100 * change.get<double>());
  return fmt::format("the throughput {} by {:.2g} % while it was measured{}{}",
                     slower ? "fell" : "rose", 100 * std::abs(drift.at("change").get<double>()),
                     beside, slower ? "" : "; more --num_warmup_batches leave the rise out");
}

}  // namespace

std::string divergence_warning(const Json& record) {
  const auto loss = record.find("loss");
  if (record.at("status") != "ok" || loss == record.end() || !loss->is_object() ||
      loss->at("diverged") != true)
    return "";
  return fmt::format(
      "the loss diverged (first {}, last {}): the throughput stands, but this training learns "
      "nothing; lower the learning rate, or set --lr_warmup_steps or --clip_norm",
      four_digits(loss->at("first")), four_digits(loss->at("last")));
}

std::string preflight_warning(const Json& record) {
  const auto named = record.find("preflight");
  if (named == record.end() || !named->is_object()) return "";
  const Json& verdict = named->at("verdict");
  const Json& hosts = named->at("hosts_not_covered");
  std::string text;
  if (verdict.is_null())
    text = "did not come to an end";
  else if (verdict != "pass")
    text = fmt::format("has the verdict {}", verdict.get<std::string>());
  if (!hosts.empty()) {
    if (!text.empty()) text += " and ";
    text += "did not run on " + hosts[0].get<std::string>();
    if (hosts.size() > 1) text += fmt::format(" and {} more", hosts.size() - 1);
  }
  if (text.empty()) return "";
  return fmt::format("preflight {} {}", named->at("id").get<std::string>().substr(0, 8), text);
}

std::vector<std::string> run_warnings(const Json& record) {
  NoiseSummary noise;
  noise.add(record);
  std::vector<std::string> all{straggler_warning(record), divergence_warning(record),
                               drift_warning(record), preflight_warning(record)};
  const auto disturbed = noise.warnings();
  all.insert(all.end(), disturbed.begin(), disturbed.end());
  std::erase(all, "");
  return all;
}

void add_warnings(Json& record, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    if (!warning.empty()) record["warnings"].push_back(warning);
}

}  // namespace scalemark
