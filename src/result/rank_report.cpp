// A rank's report as JSON: what travels to rank 0.
#include <algorithm>
#include <array>
#include <utility>

#include "result/run_record.hpp"

namespace scalemark {
namespace {
using nlohmann::json;

template <typename T>
std::optional<T> optional_at(const json& object, const char* key) {
  const json& value = object.at(key);
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

json noise_to_json(const NoiseEvidence& noise) {
  return {{"steal", or_null<json>(noise.steal)},
          {"busy_cpu_seconds", or_null<json>(noise.busy_cpu_seconds)},
          {"family_cpu_seconds", or_null<json>(noise.family_cpu_seconds)},
          {"own_cpu_seconds", noise.own_cpu_seconds},
          {"seconds", noise.seconds},
          {"throttled_seconds", or_null<json>(noise.throttled_seconds)},
          {"load1", or_null<json>(noise.load1)},
          {"context_switches", noise.context_switches},
          {"nic_bytes", or_null<json>(noise.nic_bytes)},
          {"link_bytes", noise.link_bytes},
          {"error_counters", noise.error_counters}};
}

NoiseEvidence noise_from_json(const json& object) {
  NoiseEvidence noise;
  noise.steal = optional_at<double>(object, "steal");
  noise.busy_cpu_seconds = optional_at<double>(object, "busy_cpu_seconds");
  noise.family_cpu_seconds = optional_at<double>(object, "family_cpu_seconds");
  noise.own_cpu_seconds = object.at("own_cpu_seconds");
  noise.seconds = object.at("seconds");
  noise.throttled_seconds = optional_at<double>(object, "throttled_seconds");
  noise.load1 = optional_at<double>(object, "load1");
  noise.context_switches = object.at("context_switches");
  noise.nic_bytes = optional_at<std::uint64_t>(object, "nic_bytes");
  noise.link_bytes = object.at("link_bytes").get<std::map<std::string, std::uint64_t>>();
  noise.error_counters = object.at("error_counters").get<std::map<std::string, std::uint64_t>>();
  return noise;
}

constexpr std::array<std::pair<const char*, std::optional<double> MachineReading::*>, 11> kReadings{
    {{"cpu_mhz", &MachineReading::cpu_mhz},
     {"memory_bytes", &MachineReading::memory_bytes},
     {"cpu_celsius", &MachineReading::cpu_celsius},
     {"host_joules", &MachineReading::host_joules},
     {"busy_cpu_seconds", &MachineReading::busy_cpu_seconds},
     {"nic_errors", &MachineReading::nic_errors},
     {"gpu_mhz", &MachineReading::gpu_mhz},
     {"gpu_celsius", &MachineReading::gpu_celsius},
     {"gpu_watts", &MachineReading::gpu_watts},
     {"gpu_memory_bytes", &MachineReading::gpu_memory_bytes},
     {"gpu_errors", &MachineReading::gpu_errors}}};

/// By key a list over time, of keys that were ever read.
json readings_to_json(const std::vector<MachineReading>& readings) {
  json lists{{"at", json::array()}};
  for (const MachineReading& reading : readings) lists["at"].push_back(reading.at);
  for (const auto& [key, value] : kReadings) {
    if (std::ranges::none_of(readings,
                             [&value = value](auto& r) { return (r.*value).has_value(); }))
      continue;
    for (const MachineReading& reading : readings)
      lists[key].push_back(or_null<json>(reading.*value));
  }
  return lists;
}

std::vector<MachineReading> readings_from_json(const json& lists) {
  std::vector<MachineReading> readings(lists.at("at").size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    readings[i].at = lists["at"][i];
    for (const auto& [key, value] : kReadings)
      if (lists.contains(key) && !lists[key].at(i).is_null())
        readings[i].*value = lists[key][i].get<double>();
  }
  return readings;
}
}  // namespace

json to_json(const RankReport& report) {
  return {{"rank", report.rank},
          {"host", report.host},
          {"cpus", report.affinity.cpus},
          {"numa", report.affinity.numa},
          {"partial_numa", report.affinity.partial_numa},
          {"usable", report.affinity.usable},
          {"cores", report.affinity.cores},
          {"affinity_requested", report.affinity_requested.text},
          {"cores_requested", or_null<json>(report.affinity_requested.cores)},
          {"cpus_of_host", report.cpus_of_host},
          {"near_cpus_of_gpu", report.near_cpus_of_gpu},
          {"gpu", or_null<json>(report.gpu)},
          {"gpu_uuid", report.gpu_uuid},
          {"threads", report.threads},
          {"samples", to_json(report.samples)},
          {"noise", noise_to_json(report.noise)},
          {"readings", readings_to_json(report.readings)},
          {"host_joules", or_null<json>(report.energy.host_joules)},
          {"gpu_joules", or_null<json>(report.energy.gpu_joules)},
          {"energy_reason", report.energy.reason},
          {"gpu_energy_reason", report.energy.gpu_reason},
          {"energy_of_host", report.energy_of_host},
          {"communication_cpu_seconds", report.communication_cpu_seconds},
          {"peak_rss_bytes", report.peak_rss_bytes},
          {"peak_gpu_bytes", or_null<json>(report.peak_gpu_bytes)},
          {"gradient_buffer_bytes", report.gradient_buffer_bytes},
          {"weight_bytes", report.weight_bytes},
          {"optimizer_state_bytes", report.optimizer_state_bytes},
          {"batch_bytes", report.batch_bytes}};
}

RankReport rank_report_from_json(const json& object) {
  RankReport report;
  report.rank = object.at("rank");
  report.host = object.at("host");
  report.affinity.cpus = object.at("cpus").get<std::vector<int>>();
  report.affinity.numa = object.at("numa").get<std::vector<int>>();
  report.affinity.partial_numa = object.at("partial_numa").get<std::vector<int>>();
  report.affinity.usable = object.at("usable");
  report.affinity.cores = object.at("cores");
  report.affinity_requested = {object.at("affinity_requested"),
                               optional_at<int>(object, "cores_requested")};
  report.cpus_of_host = object.at("cpus_of_host");
  report.near_cpus_of_gpu = object.at("near_cpus_of_gpu").get<std::vector<int>>();
  report.gpu = optional_at<int>(object, "gpu");
  report.gpu_uuid = object.at("gpu_uuid");
  report.threads = object.at("threads");
  report.samples = samples_from_json(object.at("samples"));
  report.noise = noise_from_json(object.at("noise"));
  report.readings = readings_from_json(object.at("readings"));
  report.energy.host_joules = optional_at<double>(object, "host_joules");
  report.energy.gpu_joules = optional_at<double>(object, "gpu_joules");
  report.energy.reason = object.at("energy_reason");
  report.energy.gpu_reason = object.at("gpu_energy_reason");
  report.energy_of_host = object.at("energy_of_host");
  report.communication_cpu_seconds = object.at("communication_cpu_seconds");
  report.peak_rss_bytes = object.at("peak_rss_bytes");
  report.peak_gpu_bytes = optional_at<std::int64_t>(object, "peak_gpu_bytes");
  report.gradient_buffer_bytes = object.at("gradient_buffer_bytes");
  report.weight_bytes = object.at("weight_bytes");
  report.optimizer_state_bytes = object.at("optimizer_state_bytes");
  report.batch_bytes = object.at("batch_bytes");
  return report;
}

}  // namespace scalemark
