// Reads, makes and writes rules, and applies them to values and records.
#include "analysis/preflight/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/settings.hpp"
#include "config/json_text.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "record/preflight.hpp"
#include "record/read.hpp"
#include "record/schema.hpp"
#include "record/write.hpp"
#include "result/foreign_load.hpp"
#include "result/preflight_record.hpp"

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

constexpr double kLatencyBelow = 65536;  // bytes: below it a collective is judged by its time

struct RuleOfFile {
  std::string check, statistic;
  Json min = nullptr, max = nullptr, relative_to_median = nullptr, equals = nullptr;
  CheckStatus level = CheckStatus::fail;

  static void describe(Fields& fields) {
    using R = RuleOfFile;
    fields.add("check", &R::check, "a name, or its beginning and *: gemm.*").filled();
    fields.add("statistic", &R::statistic, "of the check: flops").filled();
    const auto number = [&](const char* key, Json R::*bound, const char* text) {
      fields.add(key, bound, text).types({"number"}).optional();
    };
    number("min", &R::min, "least value");
    number("max", &R::max, "largest value");
    number("relative_to_median", &R::relative_to_median, "least fraction of the median of ranks");
    fields.add("equals", &R::equals, "only value")
        .types({"number", "string", "boolean"})
        .optional();
    fields.add("level", &R::level, "what a value beyond it is").one_of({"warn", "fail"});
    fields.exactly_one_of({"min", "max", "relative_to_median", "equals"});
  }
};

struct RulesFile {
  std::string schema, description;
  std::vector<RuleOfFile> rules;

  static void describe(Fields& fields) {
    fields.add("$schema", &RulesFile::schema).optional();
    fields.add("description", &RulesFile::description, "in words").optional();
    fields.add("rules", &RulesFile::rules, "names and units: docs/preflight.md").filled();
  }
};

PreflightRule rule_from(const RuleOfFile& from) {
  PreflightRule rule{from.check, from.statistic, Bound::equals, from.equals, from.level};
  for (const auto& [bound, limit] :
       {std::pair(Bound::min, &from.min), std::pair(Bound::max, &from.max),
        std::pair(Bound::relative_to_median, &from.relative_to_median)})
    if (!limit->is_null()) {
      rule.bound = bound;
      rule.limit = *limit;
    }
  return rule;
}

/// What checks are called, or how the names of several begin, up to a dot.
const std::vector<std::string> kChecks{
    "binding",    "collective",       "fabric",     "gemm",       "gpu.clock",     "gpu.copies",
    "gpu.direct", "gpu.ecc",          "gpu.memory", "gpu.nvlink", "gpu.peers",     "gpu.xid",
    "host",       "memory_bandwidth", "nic",        "noise",      "noise_quantum", "pair.host",
    "pair.link",  "scratch",          "settings"};

/// The statistics that are no key of a record's own.
constexpr std::array kCounted{
    "ats",       "as_asked",    "corrected_new",   "crosses_numa",      "differing",
    "errors",    "events",      "free_bytes",      "inactive",          "kernel_log",
    "near_gpu",  "of_hosts",    "overlaps",        "power_capped",      "sm_fraction",
    "slowdowns", "uncorrected", "memory_fraction", "throttled_fraction"};

const std::vector<std::string>& all_statistics() {
  static const auto names = [] {
    std::set<std::string> all(kCounted.begin(), kCounted.end());
    visit_fields(fields_of<PreflightResult>(),
                 [&](const Field& field, const std::string&) { all.insert(field.key); });
    return std::vector<std::string>(all.begin(), all.end());
  }();
  return names;
}

/// A rule by whose name nothing is ever called would be skipped for ever.
void refuse_misspelt(const PreflightRule& rule, const std::string& place) {
  const bool open = rule.check.ends_with("*");
  const std::string name = rule.check.substr(0, rule.check.size() - (open ? 1 : 0));
  const auto is_meant = [&](const std::string& check) {
    return name == check || name.starts_with(check + ".") || (open && check.starts_with(name));
  };
  if (std::ranges::none_of(kChecks, is_meant))
    refuse_at(
        place + "/check",
        fmt::format("no check is called {}{} (legal: {}, or one of these and what "
                    "follows it after a dot)",
                    quote(rule.check), did_you_mean(rule.check, kChecks), join(kChecks, ", ")));
  const auto& statistics = all_statistics();  // settings are those of MPI
  if (name != "settings" && std::ranges::find(statistics, rule.statistic) == statistics.end())
    refuse_at(place + "/statistic",
              fmt::format("no check has a statistic {}{}", quote(rule.statistic),
                          did_you_mean(rule.statistic, statistics)));
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

std::string_view default_preflight_rules() { return kDefaultRules; }

const Fields& rules_file_fields() { return fields_of<RulesFile>(); }

std::vector<PreflightRule> parse_preflight_rules(std::string_view text, std::string_view name) {
  const auto file = written_in<RulesFile>(text, name, "rules file");
  std::vector<PreflightRule> rules;
  std::ranges::transform(file.rules, std::back_inserter(rules), rule_from);
  for (std::size_t i = 0; i < rules.size(); ++i)
    refuse_misspelt(rules[i], fmt::format("{}: /rules/{}", name, i));
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

namespace {

bool names(const std::string& pattern, const std::string& check) {
  if (!pattern.ends_with('*')) return pattern == check;
  return check.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

std::string place_of(const PreflightValue& value) {
  if (value.rank) return fmt::format("rank {} on {}", *value.rank, value.host);
  return value.host;
}

/// What the rule looks at, of one check: the values that are known.
struct RuleGroup {
  std::vector<const PreflightValue*> known;
  const PreflightValue* first = nullptr;  ///< known or not
};

double reference_of(const RuleGroup& group) {
  std::vector<double> numbers;
  for (const PreflightValue* value : group.known) numbers.push_back(value->value);
  if (numbers.size() != 2) return median(numbers);
  return group.first->higher_is_better ? std::ranges::max(numbers) : std::ranges::min(numbers);
}

record::Check result_of(const PreflightRule& rule, const PreflightValue& value) {
  record::Check result;
  result.name = value.check;
  result.statistic = value.statistic;
  result.bound = rule.bound;
  result.limit = rule.limit;
  result.unit = rule.bound == Bound::relative_to_median ? "" : value.unit;
  result.rank = value.rank;
  result.host = known_text(value.host);
  result.value = value.value;
  return result;
}

record::Check skipped(const PreflightRule& rule, const std::string& name, const std::string& why) {
  record::Check result;
  result.name = name;
  result.statistic = rule.statistic;
  result.status = CheckStatus::skip;
  result.bound = rule.bound;
  result.limit = rule.limit;
  result.message = why;
  return result;
}

std::string median_words(const PreflightValue& value, std::size_t count) {
  const std::string one = value.rank ? "rank" : "host";
  return count == 2 ? "better " + one : "median of the " + one + "s";
}

/// `reference`: of relative_to_median.
record::Check check_value(const PreflightRule& rule, const PreflightValue& value, double reference,
                          std::size_t ranks) {
  record::Check result = result_of(rule, value);
  const std::string place = place_of(value);
  const std::string begin = place.empty() ? "" : place + ": ";
  const std::string what = shown_value(value.value, value.unit);
  const auto limit = [&] { return shown_value(rule.limit, value.unit); };
  bool kept = true;
  switch (rule.bound) {
    case Bound::min:
      kept = value.value.get<double>() >= rule.limit.get<double>();
      result.message = fmt::format("{}{}, at least {}", begin, what, limit());
      break;
    case Bound::max:
      kept = value.value.get<double>() <= rule.limit.get<double>();
      result.message = fmt::format("{}{}, at most {}", begin, what, limit());
      break;
    case Bound::equals:
      kept = value.value == rule.limit;
      result.message = fmt::format("{}{}, to be {}", begin, what, limit());
      break;
    case Bound::relative_to_median: {
      const double number = value.value;
      const double worse = value.higher_is_better ? number : reference;
      const double better = value.higher_is_better ? reference : number;
      const double fraction = better > 0 ? worse / better : 1.;
      result.value = Json(fraction);
      kept = fraction >= rule.limit.get<double>();
      result.message = fmt::format("{}{}, {:.2f} of the {} ({})", begin, what, fraction,
                                   median_words(value, ranks), shown_value(reference, value.unit));
    }
  }
  result.status = kept ? CheckStatus::pass : rule.level;
  if (!kept && !value.detail.empty()) result.message = begin + value.detail;
  return result;
}

/// Whether `a` is nearer to its limit than `b`.
bool nearer(const PreflightRule& rule, const record::Check& a, const record::Check& b) {
  if (!a.value->is_number() || !b.value->is_number()) return false;
  return rule.bound == Bound::max ? *a.value > *b.value : *a.value < *b.value;
}

void apply(const PreflightRule& rule, const RuleGroup& group, std::vector<record::Check>& results) {
  const std::string& name = group.first->check;
  const bool relative = rule.bound == Bound::relative_to_median;
  if (group.known.empty())
    return results.push_back(
        skipped(rule, name, "not known here: see `unavailable` in the record"));
  if (relative && group.known.size() < 2)
    return results.push_back(skipped(rule, name, "one rank has no others to be compared with"));
  if (rule.bound != Bound::equals)
    for (const PreflightValue* value : group.known)
      if (!value->value.is_number())
        return results.push_back(
            skipped(rule, name,
                    fmt::format("{} is no number: \"equals\" compares it", value->value.dump())));
  const double reference = relative ? reference_of(group) : 0;
  std::optional<record::Check> nearest;
  bool kept = true;
  for (const PreflightValue* value : group.known) {
    record::Check result = check_value(rule, *value, reference, group.known.size());
    if (result.status != CheckStatus::pass) {
      kept = false;
      results.push_back(std::move(result));
    } else if (!nearest || nearer(rule, result, *nearest)) {
      nearest = std::move(result);
    }
  }
  if (kept) results.push_back(std::move(*nearest));
}

}  // namespace

std::vector<record::Check> evaluate(const std::vector<PreflightRule>& rules,
                                    const std::vector<PreflightValue>& values) {
  std::vector<record::Check> results;
  for (const PreflightRule& rule : rules) {
    std::vector<std::string> checks;  // in the order of the values
    for (const PreflightValue& value : values)
      if (names(rule.check, value.check) && value.statistic == rule.statistic &&
          std::ranges::find(checks, value.check) == checks.end())
        checks.push_back(value.check);
    if (checks.empty())
      results.push_back(skipped(rule, rule.check, "nothing of this name was measured here"));
    for (const std::string& check : checks) {
      RuleGroup group;
      for (const PreflightValue& value : values) {
        if (value.check != check || value.statistic != rule.statistic) continue;
        if (!group.first) group.first = &value;
        if (!value.value.is_null()) group.known.push_back(&value);
      }
      apply(rule, group, results);
    }
  }
  return results;
}

CheckStatus verdict_of(const std::vector<record::Check>& results) {
  CheckStatus worst = CheckStatus::pass;
  for (const record::Check& result : results)
    if (result.status != CheckStatus::skip) worst = std::max(worst, result.status);
  return worst;
}

namespace {

/// One line for all that GPUs would be checked for.
record::Check no_gpu_check(const record::System& system) {
  record::Check result;
  result.name = "gpu";
  result.statistic = "health";
  result.status = CheckStatus::skip;
  result.bound = Bound::equals;
  result.message = "the ranks use no GPU";
  if (!system.gpu_driver.why().empty()) result.message += ": " + system.gpu_driver.why();
  return result;
}

record::CommunicationSettings settings_of_ranks(const std::vector<PreflightRank>& ranks) {
  std::vector<Settings> settings;
  for (const PreflightRank& rank : ranks) settings.push_back(rank.settings);
  return settings_of(settings);
}

/// Whether a check tells how fast something was.
bool is_speed(const record::Check& result) {
  static constexpr std::string_view kChecks[] = {"gemm.",       "memory_bandwidth", "noise_quantum",
                                                 "collective.", "scratch",          "gpu.copies.",
                                                 "pair."};
  return result.statistic != "wrong_elements" &&
         std::ranges::any_of(
             kChecks, [&](std::string_view check) { return result.name.starts_with(check); });
}

/// Where more ranks than CPUs share cores, chance makes some slower than others: no node's fault.
void excuse_crowded_ranks(std::vector<record::Check>& results, const PreflightResult& record,
                          const std::vector<PreflightRank>& ranks) {
  for (record::Check& result : results) {
    if (result.status != CheckStatus::fail || result.bound != Bound::relative_to_median ||
        !result.rank)
      continue;
    const auto place = static_cast<std::size_t>(*result.rank);
    const auto& others = record.ranks.at(place).binding.overlaps_with;
    if (others.size() + 1 <= ranks[place].report.affinity.cpus.size()) continue;
    result.status = CheckStatus::warn;
    result.message += fmt::format("; {} ranks share its cores", others.size() + 1);
  }
}

/// What a busy host explains is said first: others' load slows whatever is measured beside it.
void name_foreign_load(std::vector<record::Check>& results,
                       const std::vector<PreflightRank>& ranks) {
  std::vector<RankReport> reports;
  for (const PreflightRank& rank : ranks) reports.push_back(rank.report);
  const auto loads = foreign_loads(reports);
  for (record::Check& result : results) {
    const bool not_kept = result.status == CheckStatus::fail || result.status == CheckStatus::warn;
    if (!not_kept || !is_speed(result)) continue;
    for (const ForeignLoad& load : loads)
      if (load.notable() && (!result.host || result.host == load.host)) {
        result.message =
            fmt::format("{} of {} meanwhile; {}", load.words(), load.host, result.message);
        break;
      }
  }
}

}  // namespace

void apply_preflight_rules(PreflightResult& record, const std::vector<PreflightRank>& ranks,
                           const std::vector<PreflightRule>& rules) {
  record.settings = settings_of_ranks(ranks);
  const bool pinning = record.of_pinning();
  const bool gpus = record.device == "cuda";
  std::vector<PreflightRule> applied;
  for (const PreflightRule& rule : rules) {
    if (rule.statistic == "near_gpu" && !gpus) continue;
    if (rule.check.starts_with("pair.") && !record.pairs) continue;
    if (pinning ? rule.check == "binding" : gpus || !rule.check.starts_with("gpu."))
      applied.push_back(rule);
  }
  record.checks = evaluate(applied, preflight_values(record));
  excuse_crowded_ranks(record.checks, record, ranks);
  name_foreign_load(record.checks, ranks);
  if (!pinning && !gpus) record.checks.push_back(no_gpu_check(record.system));
  record.verdict = verdict_of(record.checks);
  for (const record::Check& check : record.checks)
    if (check.status == CheckStatus::warn || check.status == CheckStatus::fail)
      record.warnings.push_back(
          fmt::format("{} {}: {}", check.name, check.statistic, check.message));
}

Json judged_json(const PreflightResult& record) {
  Json json = record_json(record);
  diagnosis::add_findings(json);
  return json;
}

namespace {

void refuse_absent_cpus(const std::vector<std::vector<int>>& masks,
                        const std::vector<int>& machine) {
  for (std::size_t rank = 0; rank < masks.size(); ++rank)
    for (const int cpu : masks[rank])
      if (!std::ranges::binary_search(machine, cpu))
        refuse_at("--cpu_masks",
                  fmt::format("the mask of rank {} has CPU {}, but the machine has {} CPUs: {}",
                              rank, cpu, machine.size(), format_cpu_list(machine)));
}

std::vector<PreflightRank> ranks_of_masks(const RecordContext& context, hwloc_topology_t topology,
                                          const std::vector<std::vector<int>>& masks) {
  const std::vector<int> machine = cpus_of_machine(topology);
  refuse_absent_cpus(masks, machine);
  std::vector<PreflightRank> ranks(masks.size());
  for (std::size_t i = 0; i < masks.size(); ++i) {
    RankReport& report = ranks[i].report;
    report.rank = static_cast<int>(i);
    report.host = host_name();
    report.affinity = affinity_of(topology, masks[i]);
    report.cpus_of_host = static_cast<int>(machine.size());
    report.threads = report.affinity.usable;
    ranks[i].settings = communication_settings(context.environment);
  }
  ranks.front().host = checked_host(context.system);
  return ranks;
}

/// What a rank that runs would tell.
void explain_unstarted(PreflightResult& record) {
  const Unknown why{"--cpu_masks starts no rank"};
  record.device_name = record.allocator = why;
  record.settings->hcoll_enabled = why;
  for (record::CheckedRank& rank : record.ranks) {
    rank.affinity_requested = why;
    rank.binding.as_asked = why;
  }
}

}  // namespace

PreflightResult judged_masks(const RecordContext& context, hwloc_topology_t topology,
                             const std::vector<std::vector<int>>& masks,
                             const std::vector<PreflightRule>& rules) {
  const double start = steady_seconds();
  PreflightFacts facts;
  facts.world_size = static_cast<int>(masks.size());
  facts.device = "cpu";
  facts.started_at = utc_timestamp();
  facts.collectives = Unknown{"--pinning measures nothing"};
  const auto ranks = ranks_of_masks(context, topology, masks);
  facts.wall_seconds = steady_seconds() - start;
  PreflightResult record = make_preflight_record(context, facts, ranks);
  apply_preflight_rules(record, ranks, rules);
  explain_unstarted(record);
  return record;
}

}  // namespace scalemark
