// Summarises samples of GPUs, reads kernel logs and sysfs, and queries the state of a GPU through
// NVML before, while and after it works.
#include "platform/gpu_health.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "platform/nvml.hpp"
#include "platform/sources.hpp"

namespace scalemark {

namespace {

// The bits are those of nvmlClocksEventReasons in the NVML API reference.
constexpr std::uint64_t kIdle = 0x1, kPowerCap = 0x4;
constexpr std::array<std::pair<std::uint64_t, const char*>, 4> kSlowdowns{
    {{0x8, "hw_slowdown"}, {0x20, "sw_thermal"}, {0x40, "hw_thermal"}, {0x80, "hw_power_brake"}}};

std::optional<int> median_of(std::vector<int> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

constexpr unsigned kMostNvlinks = 18;
constexpr unsigned long long kXidEvents = 0x8;
constexpr double kPeriodSeconds = 0.02;
constexpr std::size_t kMostXids = 1000;  // a faulty GPU may report them faster than they are read

namespace fs = std::filesystem;

/// Counts NVIDIA's display controllers (class 0x03....).
int gpus_on_the_bus(const fs::path& root) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator it(root / "sys/bus/pci/devices", error), end; !error && it != end;
       it.increment(error))
    if (read_text(it->path() / "vendor") == "0x10de" &&
        read_text(it->path() / "class").value_or("").starts_with("0x03"))
      ++count;
  return count;
}

/// Returns a device file that exists and that this user may not open, or an empty text where there
/// is none.
std::string forbidden_device(const fs::path& root) {
  for (const char* name : {"dev/nvidiactl", "dev/nvidia0", "dev/nvidia-uvm"})
    if (fs::exists(root / name) && access((root / name).c_str(), R_OK | W_OK) != 0)
      return (root / name).string();
  return "";
}

std::string reason_of(const GpuList& list, const std::optional<std::string>& visible,
                      const std::string& cuda, const fs::path& root) {
  if (const std::string file = forbidden_device(root); !file.empty())
    return fmt::format("no permission for {}: join the group that owns it (ls -l {})", file, file);
  if (!fs::exists(root / "dev/nvidiactl"))
    return "the driver's device files are not there: load the driver (nvidia-smi), or give the "
           "container or the job its GPUs (docker run --gpus all, apptainer --nv, Slurm "
           "--gres=gpu)";
  if (list.of_machine.empty())
    return list.reason + ": load the driver (nvidia-smi), or ask Slurm for GPUs (--gres=gpu)";
  if (list.gpus.empty() && std::ranges::count(list.of_machine, list.reason, &GpuInfo::reason) > 0)
    return list.reason + ": ask its administrator; the kernel's log (dmesg) says more";
  if (visible && list.gpus.empty()) return list.reason + ": correct it or unset it";
  const auto without_slice = [](const GpuInfo& gpu) { return gpu.mig && gpu.slices.empty(); };
  if (std::ranges::all_of(list.gpus, without_slice))
    return "MIG mode is on without a slice: make one (nvidia-smi mig -cgi 0 -C), or switch MIG off";
  return cuda;
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
  std::array<char, 8192> record;  // each read returns one record of the log
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

std::string why_gpus_are_unused(const GpuList& list, const std::optional<std::string>& visible,
                                const std::string& cuda, const fs::path& root) {
  const int count = std::max(gpus_on_the_bus(root), static_cast<int>(list.of_machine.size()));
  const bool hidden = visible && (visible->empty() || *visible == "-1");
  if (count == 0 || hidden) return "";
  return fmt::format("{} NVIDIA GPU{} of this machine {} not used: {}", count,
                     count == 1 ? "" : "s", count == 1 ? "is" : "are",
                     reason_of(list, visible, cuda, root));
}

/// A GPU and the set of events that NVML keeps for it.
struct GpuWatch::Device {
  Nvml nvml;
  NvmlPlace place;
  NvmlEventSet events = nullptr;

  ~Device() {
    if (events != nullptr) nvml.free_event_set(events);
  }

  std::optional<int> mhz(int (*read)(NvmlDevice, int, unsigned*), int type) const {
    unsigned value = 0;
    if (read == nullptr || read(place.gpu, type, &value) != 0) return std::nullopt;
    return static_cast<int>(value);
  }

  GpuSample sample() const {
    GpuSample now{mhz(nvml.clock, kNvmlSm), mhz(nvml.clock, kNvmlMemory), std::nullopt};
    unsigned long long reasons = 0;
    if (nvml.clock_reasons != nullptr && nvml.clock_reasons(place.gpu, &reasons) == 0)
      now.reasons = reasons;
    return now;
  }

  void watch_xids() {
    if (nvml.event_set == nullptr || nvml.register_events == nullptr ||
        nvml.wait_event == nullptr || nvml.free_event_set == nullptr ||
        nvml.event_set(&events) != 0)
      return;
    if (nvml.register_events(place.gpu, kXidEvents, events) == 0) return;
    nvml.free_event_set(events);
    events = nullptr;
  }

  std::optional<std::vector<int>> xids() const {
    if (events == nullptr) return std::nullopt;
    std::vector<int> seen;
    int error = 0;
    for (NvmlEvent event{}; seen.size() < kMostXids;) {
      error = nvml.wait_event(events, &event, 0);
      if (error != 0) break;
      seen.push_back(static_cast<int>(event.data));
    }
    // For a GPU that is lost it is unknown whether it had events, so the result is not an empty
    // list.
    if (seen.empty() && error != kNvmlTimeout) return std::nullopt;
    return seen;
  }

  void describe(GpuHealth& health) const {
    NvmlMemory memory{};
    if (nvml.memory(place.device, &memory) == 0) {
      health.memory_bytes = static_cast<std::int64_t>(memory.total);
      health.memory_free_bytes = static_cast<std::int64_t>(memory.free);
    }
    health.sm_max_mhz = mhz(nvml.max_clock, kNvmlSm);
    health.memory_max_mhz = mhz(nvml.max_clock, kNvmlMemory);
    int now = 0, later = 0;
    if (nvml.ecc_mode != nullptr && nvml.ecc_mode(place.gpu, &now, &later) == 0)
      health.ecc_enabled = now != 0;
    count_nvlinks(health);
    health.ecc_before = read_ecc_errors(nvml, place.gpu);
    NvmlPciInfo pci{};
    const auto log = kernel_log();
    if (!log || nvml.pci(place.gpu, &pci) != 0) return;
    const std::string id = kernel_bus_id(pci.bus_id), bus = id.substr(0, id.find('.'));
    health.xids_log.emplace();
    for (const auto& [where, xid] : parse_xids(*log))
      if (where == bus) health.xids_log->push_back(xid);
  }

  void count_nvlinks(GpuHealth& health) const {
    if (nvml.nvlink_state == nullptr) return;
    int active = 0, inactive = 0;
    for (unsigned link = 0; link < kMostNvlinks; ++link) {
      int on = 0;
      if (nvml.nvlink_state(place.gpu, link, &on) == 0) ++(on != 0 ? active : inactive);
    }
    if (active + inactive == 0) return;
    health.nvlinks_active = active;
    health.nvlinks_inactive = inactive;
  }
};

GpuWatch::GpuWatch(const std::string& uuid) : device_(std::make_unique<Device>()) {
  health_.reason = device_->nvml.reason;
  if (health_.reason.empty()) health_.reason = find_place(device_->nvml, uuid, device_->place);
  if (!health_.reason.empty()) return;
  device_->describe(health_);
  device_->watch_xids();
}

GpuWatch::~GpuWatch() { end_load(); }

void GpuWatch::begin_load() {
  if (!health_.reason.empty()) return;
  thread_.emplace(kPeriodSeconds, [this] {
    samples_.push_back(device_->sample());
    return kPeriodSeconds;
  });
}

void GpuWatch::end_load() { thread_.reset(); }

GpuHealth GpuWatch::health() const {
  GpuHealth now = health_;
  if (!now.reason.empty()) return now;
  now.load = summarise(samples_);
  now.ecc_after = read_ecc_errors(device_->nvml, device_->place.gpu);
  now.xids = device_->xids();
  return now;
}

}  // namespace scalemark
