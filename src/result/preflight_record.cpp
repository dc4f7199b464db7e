// See preflight_record.hpp. Unknown numbers are null with a reason, as in every record.
#include "result/preflight_record.hpp"

#include "json.hpp"
#include "record/write.hpp"
#include "result/foreign_load.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

Json start_preflight_record(const RecordContext& context, int world_size, const Outcome& outcome) {
  Json record = start_record("preflight", context, outcome);
  record["world_size"] = world_size;
  return record;
}

Json placed(JsonWriter& writer, const record::RankPlacement& rank) {
  static const Field field("ranks", 0, shape_of<record::RankPlacement>(), "");
  return writer.write_below(field.key, field, *field.shape, &rank);
}

Json rank_of(Json rank, const PreflightRank& from, const std::vector<ForeignLoad>& loads) {
  rank["cpus_of_host"] = from.report.cpus_of_host;
  const NoiseEvidence& noise = from.report.noise;
  for (const char* key : {"gemm", "memory_bandwidth", "noise_quantum", "gpu_health"})
    rank[key] = from.measured.is_null() ? Json(nullptr) : from.measured.at(key);
  rank["noise"] = {{"steal", or_null(noise.steal)},
                   {"throttled", or_null(noise.throttled_seconds)},
                   {"load", or_null(noise.load1)},
                   {"context_switches", noise.context_switches},
                   {"foreign_cpus", nullptr}};
  for (const ForeignLoad& load : loads)
    if (load.host == from.report.host) rank["noise"]["foreign_cpus"] = load.cpus;
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

void PreflightRank::describe(Fields& fields) {
  fields.add("report", &PreflightRank::report);
  fields.add("measured", &PreflightRank::measured);
  fields.add("host", &PreflightRank::host);
  fields.add("settings", &PreflightRank::settings);
}

Json make_preflight_record(const RecordContext& context, const PreflightFacts& facts,
                           const std::vector<PreflightRank>& ranks) {
  Json record = start_preflight_record(context, facts.world_size, {});
  record["device"] = facts.device;
  record["device_name"] = facts.device_name;
  record["allocator"] = facts.allocator;
  record["started_at"] = facts.started_at;
  set_number(record, "wall_seconds", facts.wall_seconds, "");
  std::vector<RankReport> reports;
  for (const PreflightRank& rank : ranks) reports.push_back(rank.report);
  JsonWriter writer("");
  const auto placements = rank_placements(reports);
  const auto loads = foreign_loads(reports);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const PreflightRank& rank = ranks[i];
    record["ranks"].push_back(rank_of(placed(writer, placements[i]), rank, loads));
    if (rank.host.is_null()) continue;
    record["hosts"].push_back(rank.host);
    Json& host = record["hosts"].back();
    add_counters(host, rank.report.noise.error_counters);
  }
  record["unavailable"].update(writer.take_reasons());
  record["collectives"] = facts.collectives;
  record["pairs"] = facts.pairs;
  explain_nulls(record, "pairs", "all ranks are on one host, or --pinning measures nothing");
  if (facts.device != "cuda")
    for (const char* path : {"ranks.gpu_health", "hosts.gpu_peers"})
      explain_nulls(record, path, "the ranks use no GPU");
  for (const char* list : {"ranks", "hosts"})
    explain_nulls(record, list, "the host does not tell, or --pinning measures nothing");
  explain_nulls(record, "collectives.rows.first_wrong", "no element was wrong");
  explain_nulls(
      record, "collectives",
      facts.no_collectives.empty() ? "the communicator does not tell" : facts.no_collectives);
  return record;
}

Json make_failed_preflight_record(const RecordContext& context, int world_size,
                                  const Outcome& outcome) {
  Json record = start_preflight_record(context, world_size, outcome);
  explain_nulls(record, "",
                "the checks did not come to an end: " + record["reason"].get<std::string>());
  return record;
}

}  // namespace scalemark
