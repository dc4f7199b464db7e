// See apply_rules.hpp.
#include "analysis/preflight/apply_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/settings.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "result/foreign_load.hpp"
#include "result/preflight_parts.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {

/// One line for all that GPUs would be checked for.
CheckResult no_gpu_check(const Json& record) {
  CheckResult result;
  result.name = "gpu";
  result.statistic = "health";
  result.status = CheckStatus::skip;
  result.bound = Bound::equals;
  const auto reason = record.at("unavailable").find("system.gpu_driver");
  result.message = "the ranks use no GPU";
  if (reason != record["unavailable"].end()) result.message += ": " + reason->get<std::string>();
  return result;
}

void fill_settings(Json& record, const std::vector<PreflightRank>& ranks) {
  std::vector<Settings> settings;
  for (const PreflightRank& rank : ranks) settings.push_back(rank.settings);
  record["settings"] = settings_json(settings, record["unavailable"]);
}

/// Of how fast something was.
bool is_speed(const CheckResult& result) {
  static constexpr std::string_view kChecks[] = {"gemm.",       "memory_bandwidth", "noise_quantum",
                                                 "collective.", "scratch",          "gpu.copies.",
                                                 "pair."};
  return result.statistic != "wrong_elements" &&
         std::ranges::any_of(
             kChecks, [&](std::string_view check) { return result.name.starts_with(check); });
}

/// Where more ranks than CPUs share cores, chance makes some slower than others: no node's fault.
void excuse_crowded_ranks(std::vector<CheckResult>& results, const Json& record,
                          const std::vector<PreflightRank>& ranks) {
  for (CheckResult& result : results) {
    if (result.status != CheckStatus::fail || result.bound != Bound::relative_to_median ||
        !result.rank)
      continue;
    const auto place = static_cast<std::size_t>(*result.rank);
    const Json& others = record.at("ranks")[place].at("binding").at("overlaps_with");
    if (others.size() + 1 <= ranks[place].report.affinity.cpus.size()) continue;
    result.status = CheckStatus::warn;
    result.message += fmt::format("; {} ranks share its cores", others.size() + 1);
  }
}

/// What a busy host explains is said first: others' load slows whatever is measured beside it.
void name_foreign_load(std::vector<CheckResult>& results, const std::vector<PreflightRank>& ranks) {
  std::vector<RankReport> reports;
  for (const PreflightRank& rank : ranks) reports.push_back(rank.report);
  const auto loads = foreign_loads(reports);
  for (CheckResult& result : results) {
    const bool not_kept = result.status == CheckStatus::fail || result.status == CheckStatus::warn;
    if (!not_kept || !is_speed(result)) continue;
    for (const ForeignLoad& load : loads)
      if (load.notable() && (result.host.empty() || result.host == load.host)) {
        result.message =
            fmt::format("{} of {} meanwhile; {}", load.words(), load.host, result.message);
        break;
      }
  }
}

}  // namespace

void apply_preflight_rules(Json& record, const std::vector<PreflightRank>& ranks,
                           const std::vector<PreflightRule>& rules) {
  fill_settings(record, ranks);
  const bool pinning = record.at("config").at("pinning").at("value") == true;
  const bool gpus = record.at("device") == "cuda";
  std::vector<PreflightRule> applied;
  for (const PreflightRule& rule : rules) {
    if (rule.statistic == "near_gpu" && !gpus) continue;
    if (rule.check.starts_with("pair.") && record.at("pairs").is_null()) continue;
    if (pinning ? rule.check == "binding" : gpus || !rule.check.starts_with("gpu."))
      applied.push_back(rule);
  }
  auto results = evaluate(applied, preflight_values(record));
  excuse_crowded_ranks(results, record, ranks);
  name_foreign_load(results, ranks);
  if (!pinning && !gpus) results.push_back(no_gpu_check(record));
  for (const CheckResult& result : results) record["checks"].push_back(to_json(result));
  explain_nulls(record, "checks", "skipped, or not of one rank or host alone");
  record["verdict"] = to_string(verdict_of(results));
  for (const CheckResult& result : results)
    if (result.status == CheckStatus::warn || result.status == CheckStatus::fail)
      add_warnings(record,
                   {fmt::format("{} {}: {}", result.name, result.statistic, result.message)});
  diagnosis::add_findings(record);
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
  ranks.front().host = host_json(context.system, nullptr, nullptr);
  ranks.front().host["risen_counters"] = Json::object();
  return ranks;
}

/// What a rank that runs would tell.
void explain_unstarted(Json& record) {
  record["device_name"] = record["allocator"] = nullptr;
  for (const char* path : {"device_name", "allocator", "ranks.affinity_requested",
                           "ranks.binding.as_asked", "settings.hcoll_enabled"})
    record["unavailable"][path] = "--cpu_masks starts no rank";
}

}  // namespace

Json judged_masks(const RecordContext& context, hwloc_topology_t topology,
                  const std::vector<std::vector<int>>& masks,
                  const std::vector<PreflightRule>& rules) {
  const double start = steady_seconds();
  PreflightFacts facts;
  facts.world_size = static_cast<int>(masks.size());
  facts.device = "cpu";
  facts.started_at = utc_timestamp();
  facts.no_collectives = "--pinning measures nothing";
  const auto ranks = ranks_of_masks(context, topology, masks);
  facts.wall_seconds = steady_seconds() - start;
  Json record = make_preflight_record(context, facts, ranks);
  apply_preflight_rules(record, ranks, rules);
  explain_unstarted(record);
  return record;
}

}  // namespace scalemark
