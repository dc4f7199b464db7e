// The parts of a run record that speak of ranks: communication, affinity, loss, memory and noise.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "config/names.hpp"
#include "json.hpp"
#include "measure/divergence.hpp"
#include "result/foreign_load.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {
constexpr std::size_t kMostTracePoints = 1000;

/// Bytes that the links of all hosts sent, per step and rank, in all (nullopt: not known) and by
/// link per step. Ranks of one host see the same counters, which are read around warm-up and
/// measured loop: `steps` counts both.
void fill_links(Json& record, const std::vector<RankReport>& reports, double steps) {
  bool known = steps > 0 && !reports.empty();
  std::map<std::string, std::uint64_t> by_host;
  std::map<std::pair<std::string, std::string>, std::uint64_t> by_link;
  for (const RankReport& report : reports) {
    known = known && report.noise.nic_bytes;
    if (!known) break;
    auto& bytes = by_host[report.host];
    bytes = std::max(bytes, *report.noise.nic_bytes);
    for (const auto& [link, sent] : report.noise.link_bytes) {
      auto& most = by_link[{report.host, link}];
      most = std::max(most, sent);
    }
  }
  Json& communication = record["communication"];
  if (!known) {
    for (const char* key : {"nic_bytes_per_step", "links"})
      set_unavailable(record, std::string("communication.") + key,
                      "no counters of network interfaces on every host, or no step");
    return;
  }
  double total = 0;
  for (const auto& [host, bytes] : by_host) total += static_cast<double>(bytes);
  communication["nic_bytes_per_step"] = total / steps / static_cast<double>(reports.size());
  communication["links"] = Json::array();
  for (const auto& [link, bytes] : by_link)
    if (bytes > 0)
      communication["links"].push_back({{"host", link.first},
                                        {"link", link.second},
                                        {"bytes_per_step", static_cast<double>(bytes) / steps}});
}

constexpr const char* kNoWait =
    "the reducer does not tell how long the device waited for communication";

void fill_exposed(Json& record, const RunFacts& facts, const RunMetrics& metrics,
                  std::int64_t messages) {
  std::string none;
  if (metrics.step_seconds.empty())
    none = "no step was completed";
  else if (facts.world_size == 1)
    none = "one rank has nothing to communicate";
  else if (messages == 0)
    none = "this run does not communicate";
  if (!none.empty()) {
    for (const char* key :
         {"total_seconds", "exposed_seconds", "exposed_method", "overlap_fraction"})
      set_unavailable(record, std::string("communication.") + key, none);
    return;
  }
  const std::string untold =
      "the communication time is not known: the communicator does not report it";
  const bool told = metrics.communication > 0;
  set_number(record, "communication.total_seconds",
             told ? std::optional(metrics.communication) : std::nullopt, untold);
  const bool baseline = facts.baseline_step_seconds && metrics.mean_step > 0;
  const double exposed = baseline ? metrics.mean_step - *facts.baseline_step_seconds : metrics.wait;
  const bool known = std::isfinite(exposed);
  set_number(record, "communication.exposed_seconds", known ? std::optional(exposed) : std::nullopt,
             kNoWait);
  if (known)
    record["communication"]["exposed_method"] = baseline ? "baseline" : "wait";
  else
    set_unavailable(record, "communication.exposed_method", kNoWait);
  std::optional<double> overlap;
  if (told && known) overlap = std::clamp(1.0 - exposed / metrics.communication, 0.0, 1.0);
  set_number(record, "communication.overlap_fraction", overlap, untold);
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// The largest value that any rank reports.
template <typename Get>
std::optional<double> largest(const std::vector<RankReport>& reports, Get get) {
  std::optional<double> found;
  for (const RankReport& report : reports) {
    const std::optional<double> value = get(report);
    if (value && (!found || *value > *found)) found = value;
  }
  return found;
}
}  // namespace

void fill_communication(Json& record, const LoadedConfig& config, const RunFacts& facts,
                        const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const EmbeddingTraffic rows = embedding_traffic(facts, reports, metrics);
  const std::int64_t messages = facts.messages_per_step + rows.messages;
  record["communication"] = {{"communicator", facts.communicator},
                             {"transport", null_if_empty(facts.transport)},
                             {"algorithm", null_if_empty(facts.algorithm)},
                             {"reducer", facts.reducer},
                             {"wire_dtype", facts.wire_dtype},
                             {"overlap", to_string(*config.config.overlap)},
                             {"bytes_per_step", facts.bytes_per_step + rows.bytes},
                             {"wire_bytes_per_step", facts.wire_bytes_per_step + rows.wire_bytes},
                             {"nic_bytes_per_step", nullptr},
                             {"links", nullptr},
                             {"messages_per_step", messages}};
  for (const char* key : {"transport", "algorithm"})
    if (record["communication"][key].is_null())
      set_unavailable(record, std::string("communication.") + key,
                      "the communicator does not tell");
  const std::size_t steps = metrics.step_seconds.size();
  fill_links(record, reports,
             steps == 0 ? 0
                        : static_cast<double>(steps) +
                              static_cast<double>(config.config.num_warmup_batches));
  fill_exposed(record, facts, metrics, messages);
  set_number(record, "communication.baseline_throughput", facts.baseline_throughput,
             "no run without communication was measured on these ranks");
  fill_embedding(record, facts, reports, metrics);
}

namespace {

Json rank_entry(Json& record, const RankReport& report, const BindingVerdict& binding) {
  const std::map<std::string, std::string> reasons{
      {"cpus", "sched_getaffinity is refused"},
      {"numa", "hwloc sees no NUMA nodes"},
      {"affinity_requested", "the launcher does not tell what it was asked for"},
      {"gpu", "the run used no GPU"},
      {"gpu_uuid", "the run used no GPU, or the driver tells no UUID"}};
  Json rank = {{"rank", report.rank},
               {"host", report.host},
               {"cpus", null_if_empty(format_cpu_list(report.affinity.cpus))},
               {"numa", report.affinity.numa.empty() ? Json(nullptr) : Json(report.affinity.numa)},
               {"affinity_requested", null_if_empty(report.affinity_requested.text)},
               {"binding",
                {{"overlaps_with", binding.overlaps_with},
                 {"as_asked", or_null(binding.as_asked)},
                 {"near_gpu", or_null(binding.near_gpu)},
                 {"crosses_numa", or_null(binding.crosses_numa)}}},
               {"threads", report.threads},
               {"gpu", or_null(report.gpu)},
               {"gpu_uuid", null_if_empty(report.gpu_uuid)}};
  for (const auto& [key, reason] : reasons)
    if (rank[key].is_null()) record["unavailable"]["ranks." + key] = reason;
  if (!binding.as_asked)
    record["unavailable"]["ranks.binding.as_asked"] =
        "the launcher does not tell what it was asked for, or the kernel where the rank runs";
  if (!binding.near_gpu)
    record["unavailable"]["ranks.binding.near_gpu"] =
        report.gpu ? "hwloc does not know which CPUs are near the GPU" : "the run used no GPU";
  if (!binding.crosses_numa)
    record["unavailable"]["ranks.binding.crosses_numa"] = reasons.at("numa");
  return rank;
}

}  // namespace

std::vector<Json> rank_entries(Json& record, const std::vector<RankReport>& reports) {
  std::vector<RankPlace> places;
  for (const RankReport& report : reports)
    places.push_back({report.rank, report.host, report.affinity.cpus, report.affinity.cores,
                      report.affinity_requested, report.cpus_of_host, report.near_cpus_of_gpu,
                      report.affinity.numa, report.affinity.partial_numa});
  const auto verdicts = binding_verdicts(places);
  std::vector<Json> entries;
  for (std::size_t i = 0; i < reports.size(); ++i)
    entries.push_back(rank_entry(record, reports[i], verdicts[i]));
  return entries;
}

void fill_placement(Json& record, const std::vector<RankReport>& reports) {
  std::vector<std::string> hosts;
  for (const RankReport& report : reports) hosts.push_back(report.host);
  record["placement"] = Json::array();
  for (const auto& [host, ranks] : ranks_of_nodes(hosts))
    record["placement"].push_back({{"host", host}, {"ranks", ranks}});
}

void fill_ranks(Json& record, const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const bool measured = !metrics.step_seconds.empty();
  const auto entries = rank_entries(record, reports);
  record["ranks"] = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    Json rank = entries[i];
    rank["step_seconds_mean"] = measured ? finite_or_null(metrics.rank_step[i]) : Json(nullptr);
    rank["wait_seconds_mean"] = measured ? finite_or_null(metrics.rank_wait[i]) : Json(nullptr);
    rank["units_per_step"] = measured ? Json(metrics.rank_units[i]) : Json(nullptr);
    rank["straggler"] = measured && !rank["wait_seconds_mean"].is_null()
                            ? Json(static_cast<bool>(metrics.straggler[i]))
                            : Json(nullptr);
    for (const char* key :
         {"step_seconds_mean", "wait_seconds_mean", "units_per_step", "straggler"})
      if (rank[key].is_null())
        record["unavailable"][std::string("ranks.") + key] =
            measured ? kNoWait : "no step was completed";
    record["ranks"].push_back(std::move(rank));
  }
}

void fill_lengths(Json& record, const ResolvedConfig& config,
                  const std::vector<RankReport>& reports) {
  double units = 0, padded = 0, largest_units = 0;
  std::size_t steps = 0;
  for (const RankReport& report : reports) {
    padded += report.samples.padded_units;
    steps = report.samples.units.size();
  }
  for (std::size_t i = 0; i < steps; ++i) {
    double most = 0;
    for (const RankReport& report : reports) {
      const double mine = i < report.samples.units.size() ? report.samples.units[i] : 0;
      units += mine;
      most = std::max(most, mine);
    }
    largest_units += most;
  }
  if (config.length_distribution == LengthDistribution::fixed || units <= 0)
    return set_unavailable(record, "lengths",
                           units > 0 ? "all samples are alike" : "no step was completed");
  const double ranks = static_cast<double>(reports.size());
  const double samples = record["batch_size_per_rank"].get<double>() * ranks;
  record["lengths"] = {{"distribution", to_string(config.length_distribution)}};
  const bool lognormal = config.length_distribution == LengthDistribution::lognormal;
  const std::string none = "of lognormal lengths alone";
  set_number(record, "lengths.median", lognormal ? config.length_median : std::nullopt, none);
  set_number(record, "lengths.sigma", lognormal ? std::optional(config.length_sigma) : std::nullopt,
             none);
  set_number(record, "lengths.longest", static_cast<double>(*config.sequence_length), "");
  set_number(record, "lengths.mean", units / (samples * static_cast<double>(steps)), "");
  set_number(record, "lengths.padding_fraction", 1 - units / padded, "");
  set_number(record, "lengths.imbalance", largest_units / (units / ranks), "");
}

void fill_loss(Json& record, const std::vector<RankReport>& reports) {
  const Samples samples = reports.empty() ? Samples{} : reports.front().samples;
  const std::vector<double>& loss = samples.loss;
  if (loss.empty()) return set_unavailable(record, "loss", "no loss was computed");
  record["loss"] = Json::object();
  set_number(record, "loss.first", loss.front(), "");
  set_number(record, "loss.last", loss.back(), "");
  const std::size_t stride = (loss.size() + kMostTracePoints - 1) / kMostTracePoints;
  Json trace = Json::array();
  for (std::size_t i = 0; i < loss.size(); i += stride) trace.push_back(finite_or_null(loss[i]));
  if (std::ranges::any_of(trace, [](const Json& value) { return value.is_null(); }))
    record["unavailable"]["loss.trace"] = "the loss was not finite at these points";
  record["loss"]["trace"] = std::move(trace);
  record["loss"]["trace_stride"] = stride;
  record["loss"]["scaling"] = nullptr;
  if (const auto& scaling = samples.loss_scaling)
    record["loss"]["scaling"] = {{"initial", scaling->initial},
                                 {"last", scaling->last},
                                 {"dynamic", scaling->dynamic},
                                 {"skipped_steps", scaling->skipped_steps}};
  else
    record["unavailable"]["loss.scaling"] = "the loss is scaled in fp16 alone";
  // A loss that is not finite ends the loop before it joins the trace.
  record["loss"]["diverged"] = samples.stop_reason == StopReason::non_finite || diverged(loss);
}

void fill_resources(Json& record, const std::vector<RankReport>& reports) {
  std::int64_t rss = 0, gradients = 0, weights = 0, states = 0, batches = 0, switches = 0;
  std::optional<std::int64_t> gpu;
  double communication_cpu = 0;
  Json errors = Json::object();
  std::set<std::string> hosts;
  for (const RankReport& report : reports) {
    rss = std::max(rss, report.peak_rss_bytes);
    gradients = std::max(gradients, report.gradient_buffer_bytes);
    weights = std::max(weights, report.weight_bytes);
    states = std::max(states, report.optimizer_state_bytes);
    batches = std::max(batches, report.batch_bytes);
    if (report.peak_gpu_bytes) gpu = std::max(gpu.value_or(0), *report.peak_gpu_bytes);
    switches += report.noise.context_switches;
    communication_cpu += report.communication_cpu_seconds;
    if (!hosts.insert(report.host).second) continue;  // ranks of one host see the same interfaces
    for (const auto& [name, count] : report.noise.error_counters)
      errors[report.host + ":" + name] = count;
  }
  record["memory"]["peak_rss_bytes"] = rss;
  record["memory"]["peak_gpu_bytes"] = or_null(gpu);
  explain_nulls(record, "memory.peak_gpu_bytes", "the run used no GPU");
  for (const auto& [key, bytes] : {std::pair{"gradient_buffer_bytes", gradients},
                                   {"weight_bytes", weights},
                                   {"optimizer_state_bytes", states},
                                   {"batch_bytes", batches}})
    if (record["memory"].contains(key)) record["memory"][key] = bytes;  // of training alone
  set_number(record, "noise.steal", largest(reports, [](auto& r) { return r.noise.steal; }),
             "/proc/stat is not readable");
  record["noise"]["foreign"] = foreign_json(foreign_loads(reports));
  explain_nulls(record, "noise.foreign", "/proc/stat is not readable");
  set_number(record, "noise.throttled",
             largest(reports, [](auto& r) { return r.noise.throttled_seconds; }),
             "no cgroup with CPU statistics");
  set_number(record, "noise.load", largest(reports, [](auto& r) { return r.noise.load1; }),
             "/proc/loadavg is not readable");
  record["noise"]["context_switches"] = switches;
  if (record["noise"].contains("communication_cpu_seconds"))
    set_number(record, "noise.communication_cpu_seconds", communication_cpu, "");
  record["noise"]["error_counters"] = std::move(errors);
}

}  // namespace scalemark
