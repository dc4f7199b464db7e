// See preflight_record.hpp. Unknown numbers are null with a reason, as in every record.
#include "result/preflight_record.hpp"

#include "result/or_null.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

Json skeleton(const LoadedConfig& config, int world_size, Status status, const std::string& reason,
              const SystemInfo& system, const std::map<std::string, std::string>& environment) {
  Json record = start_record("preflight", status, reason,
                             {"verdict", "checks", "world_size", "device", "device_name", "config",
                              "ranks", "hosts", "collectives", "settings", "system", "environment",
                              "allocator", "started_at", "wall_seconds"},
                             config, world_size, system, environment);
  for (const char* key : {"model", "precision"}) record.erase(key);  // preflight has neither
  record["checks"] = Json::array();
  record["ranks"] = Json::array();
  record["hosts"] = Json::array();
  return record;
}

/// Gives every null below `node` its reason; `path` without indices, as `unavailable` wants it.
void explain(Json& record, const Json& node, const std::string& path, const std::string& reason) {
  if (node.is_null() && !record["unavailable"].contains(path)) record["unavailable"][path] = reason;
  if (node.is_array())
    for (const Json& part : node) explain(record, part, path, reason);
  if (node.is_object())
    for (const auto& [key, part] : node.items()) explain(record, part, path + "." + key, reason);
}

Json rank_of(Json rank, const PreflightRank& from) {
  rank["cpus_of_host"] = from.report.cpus_of_host;
  const NoiseEvidence& noise = from.report.noise;
  for (const char* key : {"gemm", "memory_bandwidth", "noise_quantum", "gpu_health"})
    rank[key] = from.measured.is_null() ? Json(nullptr) : from.measured.at(key);
  rank["noise"] = {{"steal", or_null(noise.steal)},
                   {"throttled", or_null(noise.throttled_seconds)},
                   {"load", or_null(noise.load1)},
                   {"context_switches", noise.context_switches}};
  return rank;
}

/// New errors by link: of interfaces those of the noise, of fabric ports the sum of what rose.
void add_counters(Json& host, const std::map<std::string, std::uint64_t>& of_interfaces) {
  Json counters = of_interfaces;
  for (const Json& port : host.at("fabric")) {
    const std::string name = port.at("name");
    std::uint64_t sum = 0;
    for (const auto& [counter, rose] : host.at("risen_counters").items())
      if (counter.starts_with(name + ".")) sum += rose.get<std::uint64_t>();
    counters[name] = sum;
  }
  host["error_counters"] = counters;
}

}  // namespace

nlohmann::json to_json(const PreflightRank& rank) {
  return {{"report", to_json(rank.report)},
          {"measured", rank.measured.dump()},  // as text: it keeps the order of its keys
          {"host", rank.host.dump()},
          {"settings", rank.settings}};
}

PreflightRank preflight_rank_from_json(const nlohmann::json& json) {
  return {rank_report_from_json(json.at("report")),
          Json::parse(json.at("measured").get<std::string>()),
          Json::parse(json.at("host").get<std::string>()),
          json.at("settings").get<std::map<std::string, std::string>>()};
}

Json make_preflight_record(const LoadedConfig& config, const PreflightFacts& facts,
                           const std::vector<PreflightRank>& ranks, const SystemInfo& system,
                           const std::map<std::string, std::string>& environment) {
  Json record = skeleton(config, facts.world_size, Status::ok, "", system, environment);
  record["device"] = facts.device;
  record["device_name"] = facts.device_name;
  record["allocator"] = facts.allocator;
  record["started_at"] = facts.started_at;
  set_number(record, "wall_seconds", facts.wall_seconds, "");
  std::vector<RankReport> reports;
  for (const PreflightRank& rank : ranks) reports.push_back(rank.report);
  const auto entries = rank_entries(record, reports);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const PreflightRank& rank = ranks[i];
    record["ranks"].push_back(rank_of(entries[i], rank));
    if (rank.host.is_null()) continue;
    record["hosts"].push_back(rank.host);
    Json& host = record["hosts"].back();
    add_counters(host, rank.report.noise.error_counters);
  }
  record["collectives"] = facts.collectives;
  if (facts.device != "cuda") {
    record["unavailable"]["ranks.gpu_health"] = "the ranks use no GPU";
    record["unavailable"]["hosts.gpu_peers"] = "the ranks use no GPU";
  }
  const std::string untold = "the host does not tell, or --pinning measures nothing";
  explain(record, record["ranks"], "ranks", untold);
  explain(record, record["hosts"], "hosts", untold);
  if (!facts.collectives.is_null())
    record["unavailable"]["collectives.rows.first_wrong"] = "no element was wrong";
  explain(record, record["collectives"], "collectives",
          facts.no_collectives.empty() ? "the communicator does not tell" : facts.no_collectives);
  return record;
}

Json make_failed_preflight_record(const LoadedConfig& config, int world_size, Status status,
                                  const std::string& reason, const SystemInfo& system,
                                  const std::map<std::string, std::string>& environment) {
  Json record = skeleton(config, world_size, status, reason, system, environment);
  explain_nulls(record,
                "the checks did not come to an end: " + record["reason"].get<std::string>());
  return record;
}

}  // namespace scalemark
