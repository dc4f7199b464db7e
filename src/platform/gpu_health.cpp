// What is said of a GPU without asking it; gpu_watch.cpp asks NVML.
#include "platform/gpu_health.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "platform/sources.hpp"

namespace scalemark {
namespace {

// nvmlClocksEventReasons, NVML API reference.
constexpr std::uint64_t kIdle = 0x1, kPowerCap = 0x4;
constexpr std::array<std::pair<std::uint64_t, const char*>, 4> kSlowdowns{
    {{0x8, "hw_slowdown"}, {0x20, "sw_thermal"}, {0x40, "hw_thermal"}, {0x80, "hw_power_brake"}}};

std::optional<int> median_of(std::vector<int> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

GpuLoad summarise(const std::vector<GpuSample>& samples) {
  std::vector<int> sm, memory;
  std::optional<std::uint64_t> seen;
  for (const GpuSample& sample : samples) {
    if (sample.reasons.value_or(0) & kIdle) continue;
    if (sample.sm_mhz) sm.push_back(*sample.sm_mhz);
    if (sample.memory_mhz) memory.push_back(*sample.memory_mhz);
    if (sample.reasons) seen = seen.value_or(0) | *sample.reasons;
  }
  GpuLoad load{median_of(std::move(sm)), median_of(std::move(memory)), std::nullopt, std::nullopt};
  if (!seen) return load;
  load.power_capped = (*seen & kPowerCap) != 0;
  load.slowdowns.emplace();
  for (const auto& [bit, name] : kSlowdowns)
    if (*seen & bit) load.slowdowns->push_back(name);
  return load;
}

std::vector<std::pair<std::string, int>> parse_xids(std::string_view log) {
  constexpr std::string_view kBegin = "NVRM: Xid (PCI:";
  std::vector<std::pair<std::string, int>> found;
  for (auto at = log.find(kBegin); at != log.npos; at = log.find(kBegin, at + 1)) {
    const std::string_view rest = log.substr(at + kBegin.size());
    const std::size_t close = rest.find("): ");
    if (close == rest.npos || close > 16) continue;
    std::string bus(rest.substr(0, close));
    std::ranges::transform(bus, bus.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string_view number = rest.substr(close + 3);
    int xid = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), xid).ec == std::errc{})
      found.emplace_back(bus.substr(0, bus.find('.')), xid);
  }
  return found;
}

std::optional<std::string> kernel_log() {
  constexpr std::size_t kMost = 16 << 20;
  const int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string log;
  std::array<char, 8192> record;  // a read gives one record of the log
  while (log.size() < kMost) {
    const ssize_t got = read(fd, record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: overwritten meanwhile
    if (got <= 0) break;
    log.append(record.data(), static_cast<std::size_t>(got));
  }
  close(fd);
  return log;
}

bool has_peermem(const std::filesystem::path& root) {
  std::error_code error;
  return std::filesystem::exists(root / "sys/module/nvidia_peermem", error) ||
         std::filesystem::exists(root / "sys/module/nv_peer_mem", error);
}

std::optional<int> numa_node_of_pci(const std::string& pci_bus_id,
                                    const std::filesystem::path& root) {
  const auto node =
      to_number(read_text(root / "sys/bus/pci/devices" / pci_bus_id / "numa_node").value_or(""));
  return node && *node >= 0 ? std::optional(static_cast<int>(*node)) : std::nullopt;
}

}  // namespace scalemark
