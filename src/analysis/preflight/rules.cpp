// Reading, making and writing rules; preflight_verdicts.cpp applies them.
#include "analysis/preflight/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "config/json_text.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::string_view kDefaultRules = R"({
  "description": "What needs no baseline: ranks against each other, and what is wrong on any machine.",
  "rules": [
    {"check": "gemm.*", "statistic": "flops", "relative_to_median": 0.75, "level": "fail"},
    {"check": "noise_quantum", "statistic": "best_mean_seconds", "relative_to_median": 0.75, "level": "fail"},
    {"check": "memory_bandwidth", "statistic": "bytes_per_second", "relative_to_median": 0.75, "level": "warn"},
    {"check": "noise", "statistic": "steal", "max": 0.05, "level": "warn"},
    {"check": "noise", "statistic": "throttled_fraction", "max": 0.05, "level": "warn"},
    {"check": "noise", "statistic": "foreign_cpus", "max": 0.2, "level": "warn"},
    {"check": "nic.*", "statistic": "errors", "max": 0, "level": "warn"},
    {"check": "binding", "statistic": "overlaps", "max": 0, "level": "warn"},
    {"check": "binding", "statistic": "as_asked", "equals": true, "level": "warn"},
    {"check": "binding", "statistic": "near_gpu", "equals": true, "level": "warn"},
    {"check": "binding", "statistic": "crosses_numa", "equals": false, "level": "warn"},
    {"check": "settings", "statistic": "differing", "max": 0, "level": "warn"},
    {"check": "gpu.clock", "statistic": "slowdowns", "max": 0, "level": "fail"},
    {"check": "gpu.clock", "statistic": "sm_mhz", "relative_to_median": 0.9, "level": "warn"},
    {"check": "gpu.ecc", "statistic": "uncorrected", "max": 0, "level": "fail"},
    {"check": "gpu.ecc", "statistic": "corrected_new", "max": 0, "level": "warn"},
    {"check": "gpu.xid", "statistic": "events", "max": 0, "level": "fail"},
    {"check": "gpu.xid", "statistic": "kernel_log", "max": 0, "level": "warn"},
    {"check": "gpu.nvlink", "statistic": "inactive", "max": 0, "level": "warn"},
    {"check": "gpu.copies.near", "statistic": "to_device_bytes_per_second", "relative_to_median": 0.75, "level": "fail"},
    {"check": "gpu.copies.near", "statistic": "from_device_bytes_per_second", "relative_to_median": 0.75, "level": "fail"},
    {"check": "pair.host", "statistic": "bytes_per_second", "relative_to_median": 0.75, "level": "fail"},
    {"check": "pair.link", "statistic": "of_hosts", "min": 0.5, "level": "warn"},
    {"check": "collective.*", "statistic": "wrong_elements", "max": 0, "level": "fail"}
  ]
}
)";

constexpr std::array kBounds{Bound::min, Bound::max, Bound::relative_to_median, Bound::equals};
constexpr double kLatencyBelow = 65536;  // bytes: below it a collective is judged by its time

std::string text_of(const Json& rule, const char* key, const std::string& place) {
  const auto found = rule.find(key);
  if (found == rule.end() || !found->is_string() || found->get_ref<const std::string&>().empty())
    refuse_at(place, fmt::format("needs \"{}\", a text such as {}", key,
                                 std::string_view(key) == "check" ? "\"gemm.fp32\"" : "\"flops\""));
  return *found;
}

void read_bound(PreflightRule& rule, const Json& from, const std::string& place) {
  int bounds = 0;
  for (const Bound bound : kBounds) {
    const auto found = from.find(std::string(to_string(bound)));
    if (found == from.end()) continue;
    ++bounds;
    rule.bound = bound;
    rule.limit = *found;
    if (bound == Bound::equals ? found->is_structured() || found->is_null() : !found->is_number())
      refuse_at(place,
                fmt::format("\"{}\" is {}, not a {}", to_string(bound), quote(found->dump()),
                            bound == Bound::equals ? "number, text or truth value" : "number"));
  }
  if (bounds != 1)
    refuse_at(place,
              fmt::format("needs one of min, max, relative_to_median and equals, has {}", bounds));
}

PreflightRule read_rule(const Json& from, const std::string& place) {
  if (!from.is_object()) refuse_at(place, "is no object such as {\"check\": \"gemm.*\", ...}");
  const std::vector<std::string> legal{"check", "statistic",          "min",   "max",
                                       "level", "relative_to_median", "equals"};
  for (const auto& [key, value] : from.items())
    if (std::ranges::find(legal, key) == legal.end())
      refuse_at(place, fmt::format("unknown key {}{}", quote(key), did_you_mean(key, legal)));
  PreflightRule rule;
  rule.check = text_of(from, "check", place);
  rule.statistic = text_of(from, "statistic", place);
  const std::string level =
      from.contains("level") && from["level"].is_string() ? from["level"] : "";
  if (level != "warn" && level != "fail") refuse_at(place, "needs \"level\": \"warn\" or \"fail\"");
  rule.level = level == "warn" ? CheckStatus::warn : CheckStatus::fail;
  read_bound(rule, from, place);
  return rule;
}

bool is_rate_of_size(const PreflightValue& value, bool small) {
  const std::size_t dot = value.check.rfind('.');
  return (std::stod(value.check.substr(dot + 1)) < kLatencyBelow) == small;
}

/// Whether a limit of its own belongs to this value, and what is beyond it.
std::optional<CheckStatus> level_from_baseline(const PreflightValue& value) {
  const auto is = [&](std::string_view check, std::string_view statistic) {
    return value.check.starts_with(check) && value.statistic == statistic;
  };
  if (is("gemm.", "flops") || is("memory_bandwidth", "bytes_per_second") ||
      is("noise_quantum", "best_mean_seconds") || is("gpu.copies.", "to_device_bytes_per_second") ||
      is("gpu.copies.", "from_device_bytes_per_second") || is("gpu.peers.", "bytes_per_second") ||
      is("pair.host", "bytes_per_second"))
    return CheckStatus::fail;
  if (is("collective.", "busbw") && is_rate_of_size(value, false)) return CheckStatus::fail;
  if (is("collective.", "seconds") && is_rate_of_size(value, true)) return CheckStatus::warn;
  if (is("scratch", "write_bytes_per_second") || is("scratch", "read_bytes_per_second"))
    return CheckStatus::warn;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(CheckStatus status) {
  switch (status) {
    case CheckStatus::pass:
      return "pass";
    case CheckStatus::skip:
      return "skip";
    case CheckStatus::warn:
      return "warn";
    case CheckStatus::fail:
      break;
  }
  return "fail";
}

std::string_view to_string(Bound bound) {
  switch (bound) {
    case Bound::min:
      return "min";
    case Bound::max:
      return "max";
    case Bound::relative_to_median:
      return "relative_to_median";
    case Bound::equals:
      break;
  }
  return "equals";
}

std::string_view default_preflight_rules() { return kDefaultRules; }

std::vector<PreflightRule> parse_preflight_rules(std::string_view text, std::string_view name) {
  const Json file = parse_json_object(text, name, "rules file");
  for (const auto& [key, value] : file.items())
    if (key != "rules" && key != "description" && key != "$schema")
      refuse_at(fmt::format("{}: {}", name, pointer_to(key)),
                "unknown key (legal: rules, description, $schema)");
  const auto list = file.find("rules");
  if (list == file.end() || !list->is_array() || list->empty())
    refuse_at(std::string(name), "needs \"rules\", an array of one rule or more");
  std::vector<PreflightRule> rules;
  for (std::size_t i = 0; i < list->size(); ++i)
    rules.push_back(read_rule((*list)[i], fmt::format("{}: /rules/{}", name, i)));
  return rules;
}

std::vector<PreflightRule> read_preflight_rules(const std::optional<std::string>& path) {
  return path ? parse_preflight_rules(read_json_text(*path, "rules file"), *path)
              : parse_preflight_rules(kDefaultRules, "default rules");
}

Json make_preflight_rules(const std::vector<PreflightValue>& values, double margin,
                          const std::string& description) {
  Json file = Json::parse(kDefaultRules);
  file["description"] = description;
  std::set<std::pair<std::string, std::string>> seen;
  for (const PreflightValue& first : values) {
    const auto level = level_from_baseline(first);
    if (!level || !seen.insert({first.check, first.statistic}).second) continue;
    std::optional<double> worst;
    for (const PreflightValue& value : values) {
      if (value.check != first.check || value.statistic != first.statistic) continue;
      if (!value.value.is_number()) continue;
      const double number = value.value;
      if (!worst || (first.higher_is_better ? number < *worst : number > *worst)) worst = number;
    }
    if (!worst) continue;
    const double limit = first.higher_is_better ? *worst * (1 - margin) : *worst * (1 + margin);
    file["rules"].push_back({{"check", first.check},
                             {"statistic", first.statistic},
                             {first.higher_is_better ? "min" : "max", limit},
                             {"level", to_string(*level)}});
  }
  return file;
}

}  // namespace scalemark
