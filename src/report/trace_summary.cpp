// The lines of --trace: they say what the record says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "report/console.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::string trace_cost(const Json& trace) {
  const Json& slowdown = trace.at("slowdown");
  if (slowdown.is_null()) return "";
  const double percent = 100 * slowdown.get<double>();
  return fmt::format(", {:.3g} % {} than measured ones", std::abs(percent),
                     percent < 0 ? "faster" : "slower");
}

/// The groups that take a thousandth of a step or more, the longest first.
std::string group_shares(const Json& operators) {
  std::vector<std::pair<double, std::string>> shares;
  const auto add = [&](const std::string& name, const Json& group) {
    if (!group.at("share").is_number() || group.at("share") < 0.001) return;
    std::string text = fmt::format("{} {:.1f} %", name, 100 * group.at("share").get<double>());
    if (group.contains("roofline_fraction") && group["roofline_fraction"].is_number())
      text += fmt::format(" (at {:.0f} % of the GEMM rate)",
                          100 * group["roofline_fraction"].get<double>());
    shares.emplace_back(group.at("share"), text);
  };
  for (const auto& [name, group] : operators.at("groups").items()) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    add(words, group);
  }
  add("outside of operators", operators.at("outside"));
  std::ranges::sort(shares, std::greater());
  std::string text;
  for (const auto& [share, words] : shares) text += (text.empty() ? "" : ", ") + words;
  return text;
}

}  // namespace

std::string trace_summary(const Json& record) {
  const Json& trace = record.at("trace");
  if (trace.is_null()) return "";
  const auto steps = trace.at("steps").get<std::size_t>();
  std::string text =
      fmt::format("trace: {}: {}{}; https://ui.perfetto.dev or chrome://tracing opens it",
                  trace.at("path").get<std::string>(), counted(steps, "step"), trace_cost(trace));
  if (trace.at("dropped_events") > 0)
    text += fmt::format("\ntrace: full, {} operators are left out (fewer: --trace_steps)",
                        trace["dropped_events"].dump());
  const std::string shares = group_shares(record.at("operators"));
  return shares.empty() ? text : text + "\noperators: " + shares;
}

}  // namespace scalemark
