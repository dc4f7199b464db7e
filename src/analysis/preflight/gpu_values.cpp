// See gpu_values.hpp.
#include "analysis/preflight/gpu_values.hpp"

#include <fmt/format.h>

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

}  // namespace

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

}  // namespace scalemark
