// See values.hpp.
#include "analysis/preflight/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "platform/platform.hpp"

namespace scalemark {
namespace {

/// Adds values of one rank or host.
class Adder {
 public:
  Adder(std::vector<PreflightValue>& values, const PreflightValue& here)
      : values_(values), here_(here) {}

  void operator()(const std::string& check, const char* statistic, const Json& value,
                  const char* unit, bool higher_is_better, const std::string& detail = "") {
    PreflightValue added = here_;
    added.check = check;
    added.statistic = statistic;
    added.value = value;
    added.unit = unit;
    added.higher_is_better = higher_is_better;
    added.detail = detail;
    values_.push_back(std::move(added));
  }

  /// How many a list has (null: unknown), with the list as the detail.
  void count(const std::string& check, const char* statistic, const Json& list) {
    (*this)(check, statistic, list.is_null() ? list : Json(list.size()), "", false,
            list.is_null() || list.empty() ? "" : fmt::format("{}: {}", statistic, list.dump()));
  }

 private:
  std::vector<PreflightValue>& values_;
  const PreflightValue& here_;
};

Json ratio(const Json& part, const Json& whole) {
  if (!part.is_number() || !whole.is_number() || whole == 0) return nullptr;
  return part.get<double>() / whole.get<double>();
}

void add_copies(Adder& add, const Json& copies) {
  for (const Json& copy : copies) {
    const std::string where = copy.at("near").is_null()
                                  ? fmt::format("numa{}", copy.at("numa").dump())
                              : copy["near"] == true ? "near"
                                                     : "far";
    for (const char* way : {"to_device_bytes_per_second", "from_device_bytes_per_second"})
      add("gpu.copies." + where, way, copy.at(way), "bytes/s", true);
  }
}

/// Of an entry of `ranks`, at the place that `here` names; nothing without a GPU.
void add_gpu_values(std::vector<PreflightValue>& values, const Json& rank,
                    const PreflightValue& here) {
  const Json& gpu = rank.at("gpu_health");
  if (gpu.is_null()) return;
  Adder add(values, here);
  add("gpu.clock", "sm_mhz", gpu.at("sm_mhz"), "MHz", true);
  add("gpu.clock", "sm_fraction", ratio(gpu.at("sm_mhz"), gpu.at("sm_max_mhz")), "", true);
  add("gpu.clock", "memory_fraction", ratio(gpu.at("memory_mhz"), gpu.at("memory_max_mhz")), "",
      true);
  add.count("gpu.clock", "slowdowns", gpu.at("slowdowns"));
  add("gpu.clock", "power_capped", gpu.at("power_capped"), "", false);
  add("gpu.memory", "free_bytes", gpu.at("memory_free_bytes"), "bytes", true);
  for (const auto& [name, value] : gpu.at("ecc").items())
    add("gpu.ecc", name.c_str(), value, "", false);
  add.count("gpu.xid", "events", gpu.at("xids").at("events"));
  add.count("gpu.xid", "kernel_log", gpu.at("xids").at("kernel_log"));
  add("gpu.nvlink", "active", gpu.at("nvlinks").at("active"), "", true);
  add("gpu.nvlink", "inactive", gpu.at("nvlinks").at("inactive"), "", false);
  add("gpu.direct", "peermem", gpu.at("gpudirect").at("peermem"), "", true);
  add("gpu.direct", "dmabuf", gpu.at("gpudirect").at("dmabuf"), "", true);
  add("gpu.direct", "ats", gpu.at("ats"), "", true);
  add_copies(add, gpu.at("copies"));
}

/// Of an entry of `hosts`: every ordered pair of its GPUs.
void add_peer_values(std::vector<PreflightValue>& values, const Json& host,
                     const PreflightValue& here) {
  const Json& links = host.at("gpu_peers");
  if (links.is_null()) return;
  Adder add(values, here);
  for (const Json& link : links) {
    const std::string check =
        fmt::format("gpu.peers.{}-{}", link.at("from").dump(), link.at("to").dump());
    add(check, "bytes_per_second", link.at("bytes_per_second"), "bytes/s", true);
    add(check, "can_access", link.at("can_access"), "", true);
  }
}

using CheckedValues = std::vector<PreflightValue>;

struct Statistic {
  const char* name;
  const char* unit;
  bool higher_is_better;
};
constexpr std::array kGemm{Statistic{"flops", "FLOP/s", true},
                           Statistic{"median_flops", "FLOP/s", true}};
constexpr std::array kMemory{Statistic{"bytes_per_second", "bytes/s", true},
                             Statistic{"best_bytes_per_second", "bytes/s", true}};
constexpr std::array kQuantum{
    Statistic{"mean_seconds", "s", false}, Statistic{"median_seconds", "s", false},
    Statistic{"best_mean_seconds", "s", false}, Statistic{"p99_seconds", "s", false},
    Statistic{"max_over_min", "", false}};
constexpr std::array kNoise{Statistic{"steal", "", false}, Statistic{"throttled", "s", false},
                            Statistic{"load", "", false}, Statistic{"context_switches", "", false},
                            Statistic{"foreign_cpus", "CPUs", false}};
constexpr std::array kScratch{Statistic{"write_bytes_per_second", "bytes/s", true},
                              Statistic{"read_bytes_per_second", "bytes/s", true}};
constexpr std::array kHost{Statistic{"memory_available_bytes", "bytes", true},
                           Statistic{"governor", "", true}, Statistic{"smt", "", true}};
constexpr std::array kCollective{
    Statistic{"seconds", "s", false}, Statistic{"algbw", "bytes/s", true},
    Statistic{"busbw", "bytes/s", true}, Statistic{"wrong_elements", "", false}};

constexpr std::array kPair{Statistic{"bytes_per_second", "bytes/s", true},
                           Statistic{"latency_seconds", "s", false}};

/// Those of `object` (null: they are unknown) as `check` of the place that `like` names.
template <std::size_t N>
void add(CheckedValues& values, const std::string& check,
         const std::array<Statistic, N>& statistics, const Json& object,
         const PreflightValue& like) {
  for (const Statistic& statistic : statistics) {
    PreflightValue value = like;
    value.check = check;
    value.statistic = statistic.name;
    value.unit = statistic.unit;
    value.higher_is_better = statistic.higher_is_better;
    if (object.is_object()) value.value = object.value(statistic.name, Json());
    values.push_back(std::move(value));
  }
}

void add_rank(CheckedValues& values, const Json& rank, const Json& wall_seconds) {
  PreflightValue here;
  here.rank = rank.at("rank").get<int>();
  here.host = rank.at("host");
  if (rank.at("gemm").is_object())
    for (const auto& [precision, rates] : rank["gemm"].items())
      add(values, "gemm." + precision, kGemm, rates, here);
  add(values, "memory_bandwidth", kMemory, rank.at("memory_bandwidth"), here);
  add(values, "noise_quantum", kQuantum, rank.at("noise_quantum"), here);
  add(values, "noise", kNoise, rank.at("noise"), here);
  const Json& throttled = rank["noise"].at("throttled");
  PreflightValue fraction = values.back();
  fraction.statistic = "throttled_fraction";
  fraction.value = throttled.is_number() && wall_seconds.is_number() && wall_seconds > 0
                       ? Json(throttled.get<double>() / wall_seconds.get<double>())
                       : Json(nullptr);
  values.push_back(std::move(fraction));
  add_gpu_values(values, rank, here);
}

/// "symbol_error +3, link_downed +1": counters of a link that rose.
std::string rises(const Json& counters, const std::string& link) {
  std::string text;
  for (const auto& [name, rose] : counters.items())
    if (name.starts_with(link + "."))
      text += fmt::format("{}{} +{}", text.empty() ? "" : ", ", name.substr(link.size() + 1),
                          rose.dump());
  return text;
}

void add_host(CheckedValues& values, const Json& host) {
  PreflightValue here;
  here.host = host.at("host");
  add(values, "host", kHost, host, here);
  add(values, "scratch", kScratch, host.at("scratch"), here);
  for (const Json& nic : host.at("nics")) {
    add(values, "nic." + nic.at("name").get<std::string>(),
        std::array{Statistic{"speed_mbps", "Mbit/s", true}}, nic, here);
  }
  for (const Json& port : host.at("fabric"))
    add(values, "fabric." + port.at("name").get<std::string>(),
        std::array{Statistic{"state", "", true}, Statistic{"gigabits_per_second", "Gbit/s", true}},
        port, here);
  for (const auto& [name, errors] : host.at("error_counters").items()) {
    here.detail = rises(host.at("risen_counters"), name);
    add(values, "nic." + name, std::array{Statistic{"errors", "", false}}, {{"errors", errors}},
        here);
  }
  here.detail.clear();
  add_peer_values(values, host, here);
}

/// "0-3,7".
std::string rank_list(const Json& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_cpu_list(ranks.get<std::vector<int>>());
}

/// Every variable and parameter by its name: one value where all ranks have it, else each of its
/// values; and how many differ.
void add_settings(CheckedValues& values, const Json& settings) {
  if (settings.is_null()) return;
  PreflightValue here;
  here.check = "settings";
  const auto add_one = [&](const std::string& name, const Json& value) {
    here.statistic = name;
    here.value = value;
    values.push_back(here);
  };
  std::string differing;
  for (const Json& difference : settings.at("differing")) {
    const std::string name = difference.at("name");
    std::string text;
    for (const Json& entry : difference.at("values")) {
      const Json& value = entry.at("value");
      here.detail = fmt::format("{} on {}", value.is_null() ? "not set" : value.dump(),
                                rank_list(entry.at("ranks")));
      text += (text.empty() ? "" : ", ") + here.detail;
      add_one(name, value);
    }
    differing += fmt::format("{}{} is {}", differing.empty() ? "" : "; ", name, text);
  }
  here.detail.clear();
  for (const char* part : {"environment", "open_mpi"})
    for (const auto& [name, value] : settings.at(part).items())
      if (differing.empty() ||
          std::ranges::none_of(values, [&, &known = name](const PreflightValue& added) {
            return added.check == "settings" && added.statistic == known;
          }))
        add_one(name, value);
  add_one("hcoll_enabled", settings.at("hcoll_enabled"));
  here.higher_is_better = false;
  here.detail = differing;
  add_one("differing", settings.at("differing").size());
}

void add_collectives(CheckedValues& values, const Json& collectives) {
  if (!collectives.is_object()) return;
  PreflightValue all;
  all.value = collectives.at("transport");
  all.check = "collective";
  all.statistic = "transport";
  values.push_back(all);
  all.value = nullptr;
  for (const Json& row : collectives.at("rows")) {
    all.detail = row.at("first_wrong").is_string() ? row["first_wrong"].get<std::string>() : "";
    add(values,
        fmt::format("collective.{}.{}.{}", row.at("collective").get<std::string>(),
                    row.at("carrier").get<std::string>(), row.at("bytes").dump()),
        kCollective, row, all);
  }
}

/// Of a host its best pair, which a bad link to one other does not spoil; of a pair its part of
/// what its hosts do elsewhere, which is small where the link between just these two is bad.
void add_pairs(CheckedValues& values, const Json& pairs) {
  if (!pairs.is_array()) return;
  std::map<std::string, Json> best;
  for (const Json& pair : pairs)
    for (const Json& host : pair.at("hosts")) {
      Json& of_host = best[host];
      if (of_host.is_null()) of_host = pair;
      for (const auto& [statistic, higher] :
           {std::pair{"bytes_per_second", true}, {"latency_seconds", false}})
        if (higher ? pair.at(statistic) > of_host[statistic]
                   : pair.at(statistic) < of_host[statistic])
          of_host[statistic] = pair[statistic];
    }
  PreflightValue here;
  for (const auto& [host, pair] : best) {
    here.host = host;
    add(values, "pair.host", kPair, pair, here);
  }
  for (const Json& pair : pairs) {
    const std::string first = pair.at("hosts")[0], second = pair.at("hosts")[1];
    const double rate = pair.at("bytes_per_second");
    const double expected = std::min(best[first]["bytes_per_second"].get<double>(),
                                     best[second]["bytes_per_second"].get<double>());
    here.host = first + " - " + second;
    here.detail = fmt::format("{} between them, {} with others", shown_value(rate, "bytes/s"),
                              shown_value(expected, "bytes/s"));
    add(values, "pair.link", std::array{Statistic{"of_hosts", "", true}},
        {{"of_hosts", expected > 0 ? rate / expected : 1.}}, here);
  }
}

void add_binding(CheckedValues& values, const Json& ranks) {
  for (const Json& rank : ranks) {
    const Json& binding = rank.at("binding");
    PreflightValue value;
    value.check = "binding";
    value.statistic = "overlaps";
    value.higher_is_better = false;
    value.rank = rank.at("rank").get<int>();
    value.host = rank.at("host");
    value.value = binding.at("overlaps_with").size();
    const std::string cpus = rank.at("cpus").is_string() ? rank["cpus"].get<std::string>() : "?";
    if (value.value > 0)
      value.detail = fmt::format("may run on cores {}, as rank {} may", cpus,
                                 binding["overlaps_with"][0].dump());
    values.push_back(value);
    value.statistic = "as_asked";
    value.value = binding.at("as_asked");
    value.detail.clear();
    if (value.value == false)
      value.detail = fmt::format("a binding to \"{}\" was asked for, but it may run on cores {}",
                                 rank.at("affinity_requested").get<std::string>(), cpus);
    values.push_back(value);
    value.statistic = "near_gpu";
    value.value = binding.at("near_gpu");
    value.detail.clear();
    if (value.value == false)
      value.detail = fmt::format("may run on cores {}, which are not near its GPU", cpus);
    if (!value.value.is_null()) values.push_back(value);
    value.statistic = "crosses_numa";
    value.value = binding.at("crosses_numa");
    value.detail.clear();
    if (value.value == true)
      value.detail = fmt::format("may run on cores {}, which cross NUMA nodes {}", cpus,
                                 fmt::join(rank.at("numa").get<std::vector<int>>(), ", "));
    values.push_back(value);
  }
}

}  // namespace

std::vector<PreflightValue> preflight_values(const Json& record) {
  CheckedValues values;
  for (const Json& rank : record.at("ranks")) add_rank(values, rank, record.at("wall_seconds"));
  for (const Json& host : record.at("hosts")) add_host(values, host);
  add_collectives(values, record.at("collectives"));
  add_pairs(values, record.at("pairs"));
  add_binding(values, record.at("ranks"));
  add_settings(values, record.at("settings"));
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
