// Collects the numbers of a preflight record under the names that rules use.
#include "analysis/preflight/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "platform/platform.hpp"
#include "record/write.hpp"

namespace scalemark {
namespace {

template <typename T>
Json json_of(const Known<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json ratio(const Known<int>& part, const Known<int>& whole) {
  if (!part || !whole || *whole == 0) return nullptr;
  return static_cast<double>(*part) / *whole;
}

/// Adds values of one rank, of one host, or of all.
class Adder {
 public:
  Adder(std::vector<PreflightValue>& values, std::optional<int> rank, std::string host)
      : values_(values), rank_(rank), host_(std::move(host)) {}

  void add(const std::string& check, const std::string& statistic, Json value, const char* unit,
           bool higher_is_better, std::string detail = "") {
    values_.push_back({check, statistic, unit, higher_is_better, std::move(value), rank_, host_,
                       std::move(detail)});
  }

  /// The statistics of an object; null: they are unknown.
  void add_all(const std::string& check, const Fields& fields, const Json& object,
               const std::string& detail = "") {
    for (const Field& field : fields)
      if (field.better_way != Better::unsaid)
        add(check, field.key, object.is_null() ? object : object.at(field.key), field.of,
            field.better_way == Better::higher, detail);
  }
  template <typename T>
  void add_all(const std::string& check, const T& object, const std::string& detail = "") {
    add_all(check, fields_of<T>(), part_json(object), detail);
  }
  template <typename T>
  void add_all(const std::string& check, const Known<T>& object) {
    add_all(check, fields_of<T>(), object ? part_json(*object) : Json(nullptr));
  }

  /// How many a list has, with the list as the detail.
  template <typename T>
  void count(const std::string& check, const char* statistic, const Known<std::vector<T>>& list) {
    add(check, statistic, list ? Json(list->size()) : Json(nullptr), "", false,
        !list || list->empty() ? "" : fmt::format("{}: {}", statistic, Json(*list).dump()));
  }

 private:
  std::vector<PreflightValue>& values_;
  std::optional<int> rank_;
  std::string host_;
};

void add_gpu(Adder& adder, const record::GpuHealth& gpu) {
  adder.add("gpu.clock", "sm_mhz", json_of(gpu.sm_mhz), "MHz", true);
  adder.add("gpu.clock", "sm_fraction", ratio(gpu.sm_mhz, gpu.sm_max_mhz), "", true);
  adder.add("gpu.clock", "memory_fraction", ratio(gpu.memory_mhz, gpu.memory_max_mhz), "", true);
  adder.count("gpu.clock", "slowdowns", gpu.slowdowns);
  adder.add("gpu.clock", "power_capped", json_of(gpu.power_capped), "", false);
  adder.add("gpu.memory", "free_bytes", json_of(gpu.memory_free_bytes), "bytes", true);
  adder.add_all("gpu.ecc", gpu.ecc);
  adder.count("gpu.xid", "events", gpu.xids.events);
  adder.count("gpu.xid", "kernel_log", gpu.xids.kernel_log);
  adder.add_all("gpu.nvlink", gpu.nvlinks);
  adder.add_all("gpu.direct", gpu.gpudirect);
  adder.add("gpu.direct", "ats", json_of(gpu.ats), "", true);
  for (const record::GpuCopy& copy : gpu.copies)
    adder.add_all("gpu.copies." + (!copy.near   ? fmt::format("numa{}", copy.numa)
                                   : *copy.near ? "near"
                                                : "far"),
                  copy);
}

void add_rank(Adder& adder, const record::CheckedRank& rank, const Known<double>& wall_seconds) {
  const Json gemm = rank.gemm ? part_json(*rank.gemm) : Json::object();
  for (const auto& [precision, rates] : gemm.items())
    adder.add_all("gemm." + precision, fields_of<record::GemmRate>(), rates);
  adder.add_all("memory_bandwidth", rank.memory_bandwidth);
  adder.add_all("noise_quantum", rank.noise_quantum);
  adder.add_all("noise", rank.noise);
  const bool known = rank.noise.throttled && wall_seconds && *wall_seconds > 0;
  adder.add("noise", "throttled_fraction",
            known ? Json(*rank.noise.throttled / *wall_seconds) : Json(nullptr), "CPUs", false);
  if (rank.gpu_health) add_gpu(adder, *rank.gpu_health);
}

/// "symbol_error +3, link_downed +1": counters of a link that rose.
std::string rises(const ErrorCounters& counters, const std::string& link) {
  std::string text;
  for (const auto& [name, rose] : counters)
    if (name.starts_with(link + "."))
      text += fmt::format("{}{} +{}", text.empty() ? "" : ", ", name.substr(link.size() + 1), rose);
  return text;
}

void add_host(Adder& adder, const record::CheckedHost& host) {
  adder.add_all("host", host);
  adder.add_all("scratch", host.scratch);
  for (const record::LinkSpeed& nic : host.nics) adder.add_all("nic." + nic.name, nic);
  for (const record::FabricPort& port : host.fabric) adder.add_all("fabric." + port.name, port);
  for (const auto& [name, errors] : host.error_counters)
    adder.add("nic." + name, "errors", errors, "", false, rises(host.risen_counters, name));
  if (host.gpu_peers)
    for (const PeerLink& link : *host.gpu_peers)
      adder.add_all(fmt::format("gpu.peers.{}-{}", link.from, link.to), link);
}

/// "0-3,7".
std::string rank_list(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_cpu_list(ranks);
}

/// Every variable and parameter by its name: one value where all ranks have it, else each of its
/// values; and how many differ.
void add_settings(Adder& adder, const record::CommunicationSettings& settings) {
  const auto add_one = [&](const std::string& name, Json value, const std::string& detail = "") {
    adder.add("settings", name, std::move(value), "", true, detail);
  };
  std::string differing;
  for (const auto& [name, values] : settings.differing) {
    std::string text;
    for (const auto& [value, ranks] : values) {
      const std::string detail = fmt::format(
          "{} on {}", value ? Json(*value).dump() : std::string("not set"), rank_list(ranks));
      text += (text.empty() ? "" : ", ") + detail;
      add_one(name, json_of(value), detail);
    }
    differing += fmt::format("{}{} is {}", differing.empty() ? "" : "; ", name, text);
  }
  for (const auto* part : {&settings.environment, &settings.open_mpi})
    for (const auto& [name, value] : *part)
      if (std::ranges::find(settings.differing, name, &record::DifferingSetting::name) ==
          settings.differing.end())
        add_one(name, value);
  add_one("hcoll_enabled", json_of(settings.hcoll_enabled));
  adder.add("settings", "differing", settings.differing.size(), "", false, differing);
}

void add_collectives(Adder& adder, const record::Collectives& collectives) {
  adder.add_all("collective", collectives);
  for (const record::CollectiveRow& row : collectives.rows)
    adder.add_all(fmt::format("collective.{}.{}.{}", row.collective, row.carrier, row.bytes), row,
                  row.first_wrong.value_or(""));
}

/// Adds the best pair of each host, which a bad link to one other does not spoil, and of each pair
/// its part of what its hosts do elsewhere, which is small where the link between just these two is
/// bad.
void add_pairs(std::vector<PreflightValue>& values, const std::vector<record::HostPair>& pairs) {
  std::map<std::string, record::HostPair> best;
  for (const record::HostPair& pair : pairs)
    for (const std::string& host : pair.hosts) {
      record::HostPair& of_host = best.try_emplace(host, pair).first->second;
      of_host.bytes_per_second = std::max(of_host.bytes_per_second, pair.bytes_per_second);
      of_host.latency_seconds = std::min(of_host.latency_seconds, pair.latency_seconds);
    }
  for (const auto& [host, pair] : best) Adder(values, {}, host).add_all("pair.host", pair);
  for (const record::HostPair& pair : pairs) {
    const auto& [first, second] = pair.hosts;
    const double rate = pair.bytes_per_second;
    const double expected = std::min(best[first].bytes_per_second, best[second].bytes_per_second);
    Adder(values, {}, first + " - " + second)
        .add("pair.link", "of_hosts", expected > 0 ? rate / expected : 1., "", true,
             fmt::format("{} between them, {} with others", shown_value(rate, "bytes/s"),
                         shown_value(expected, "bytes/s")));
  }
}

void add_binding(Adder& adder, const record::CheckedRank& rank) {
  const record::Binding& binding = rank.binding;
  const std::string cpus = rank.cpus.value_or("?");
  const auto& others = binding.overlaps_with;
  adder.add(
      "binding", "overlaps", others.size(), "", false,
      others.empty() ? "" : fmt::format("may run on cores {}, as rank {} may", cpus, others[0]));
  adder.add("binding", "as_asked", json_of(binding.as_asked), "", false,
            binding.as_asked == false
                ? fmt::format("a binding to \"{}\" was asked for, but it may run on cores {}",
                              rank.affinity_requested.value_or(""), cpus)
                : "");
  if (binding.near_gpu)
    adder.add("binding", "near_gpu", *binding.near_gpu, "", false,
              *binding.near_gpu
                  ? ""
                  : fmt::format("may run on cores {}, which are not near its GPU", cpus));
  adder.add("binding", "crosses_numa", json_of(binding.crosses_numa), "", false,
            binding.crosses_numa == true
                ? fmt::format("may run on cores {}, which cross NUMA nodes {}", cpus,
                              fmt::join(rank.numa.value_or({}), ", "))
                : "");
}

}  // namespace

std::vector<PreflightValue> preflight_values(const PreflightResult& record) {
  std::vector<PreflightValue> values;
  const auto at_rank = [&](const record::CheckedRank& rank) {
    return Adder(values, static_cast<int>(rank.rank), rank.host);
  };
  for (const record::CheckedRank& rank : record.ranks) {
    Adder adder = at_rank(rank);
    add_rank(adder, rank, record.wall_seconds);
  }
  for (const record::CheckedHost& host : record.hosts) {
    Adder adder(values, {}, host.host);
    add_host(adder, host);
  }
  Adder of_all(values, {}, "");
  if (record.collectives) add_collectives(of_all, *record.collectives);
  if (record.pairs) add_pairs(values, *record.pairs);
  for (const record::CheckedRank& rank : record.ranks) {
    Adder adder = at_rank(rank);
    add_binding(adder, rank);
  }
  if (record.settings) add_settings(of_all, *record.settings);
  return values;
}

std::string shown_value(const Json& value, const std::string& unit) {
  if (value.is_null()) return "unknown";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number()) return value.dump();
  double number = value;
  const char* prefix = "";
  const std::string named = unit == "bytes/s" ? "B/s" : unit == "bytes" ? "B" : unit;
  if (unit == "s") {
    if (number < 1e-3) return fmt::format("{:.4g} us", 1e6 * number);
    if (number < 1) return fmt::format("{:.4g} ms", 1e3 * number);
    return fmt::format("{:.4g} s", number);
  }
  if (named == "B/s" || named == "B" || named == "FLOP/s")
    for (const char* larger : {"k", "M", "G", "T"})
      if (std::abs(number) >= 1000) {
        number /= 1000;
        prefix = larger;
      }
  return fmt::format("{:.4g}{}{}{}", number, named.empty() ? "" : " ", prefix, named);
}

}  // namespace scalemark
