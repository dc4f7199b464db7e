// Queries the state of a GPU through NVML before, while and after it works.
#include "platform/gpu_health.hpp"
#include "platform/nvml.hpp"

namespace scalemark {
namespace {

constexpr unsigned kMostNvlinks = 18;
constexpr unsigned long long kXidEvents = 0x8;
constexpr double kPeriodSeconds = 0.02;
constexpr std::size_t kMostXids = 1000;  // a faulty GPU may report them faster than they are read

}  // namespace

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
