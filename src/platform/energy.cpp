// Reads RAPL counters and NVML's energy counters, and adds them up across wraps.
#include "platform/energy.hpp"

#include <utility>

#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr double kMicro = 1e-6;

/// Returns whether a zone is counted. A package includes its cores and caches; "psys" would count
/// packages twice.
bool counts(const std::string& name) { return name.starts_with("package") || name == "dram"; }

}  // namespace

std::map<std::string, EnergyZone> read_energy_zones(const fs::path& root, std::string& reason) {
  std::map<std::string, EnergyZone> zones;
  const fs::path folder = root / "sys/class/powercap";
  std::error_code error;
  reason = "no RAPL: " + folder.string() + " has no package";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = read_text(entry.path() / "name");
    if (!name || !counts(*name)) continue;
    const auto energy = to_number(read_text(entry.path() / "energy_uj").value_or(""));
    const auto range = to_number(read_text(entry.path() / "max_energy_range_uj").value_or(""));
    if (!energy || !range || *range <= 0) {
      reason = "not readable: " + (entry.path() / "energy_uj").string() + " (needs root)";
      return {};
    }
    zones[entry.path().filename().string()] = {*energy * kMicro, *range * kMicro};
  }
  if (!zones.empty()) reason.clear();
  return zones;
}

EnergyCounter::EnergyCounter(fs::path root) : root_(std::move(root)) {
  zones_ = read_energy_zones(root_, reason_);
}

void EnergyCounter::read() {
  std::string reason;
  const auto now = read_energy_zones(root_, reason);
  for (auto& [name, zone] : zones_) {
    const auto found = now.find(name);
    if (found == now.end()) {
      lost_ = true;
      continue;
    }
    const double used = found->second.joules - zone.joules;
    joules_ += used >= 0 ? used : used + zone.range;
    zone = found->second;
  }
}

std::optional<double> EnergyCounter::joules() const {
  return zones_.empty() || lost_ ? std::nullopt : std::optional(joules_);
}

std::string EnergyCounter::reason() const {
  return lost_ ? "a RAPL counter went away during the measurement" : reason_;
}

EnergyMeter::EnergyMeter(bool host, std::string gpu_uuid, fs::path root, double period_seconds)
    : gpu_uuid_(std::move(gpu_uuid)) {
  if (!gpu_uuid_.empty()) gpu_start_ = gpu_joules(gpu_uuid_, gpu_reason_);
  if (host) host_.emplace(std::move(root));
  if (!host_ || !host_->has_zones()) return;
  thread_.emplace(period_seconds, [this, period_seconds] {
    host_->read();
    return period_seconds;
  });
}

double EnergyMeter::host_joules_so_far() {
  if (!thread_) return 0;
  const std::lock_guard lock(thread_->mutex());
  return host_->joules().value_or(0);
}

Energy EnergyMeter::stop() {
  if (thread_) {
    thread_->stop();
    thread_.reset();
    host_->read();
  }
  Energy energy;
  if (host_) {
    energy.reason = host_->reason();
    energy.host_joules = host_->joules();
  }
  count_gpu(energy);
  return energy;
}

void EnergyMeter::count_gpu(Energy& energy) const {
  energy.gpu_reason = gpu_reason_;
  const auto end = gpu_start_ ? gpu_joules(gpu_uuid_, energy.gpu_reason) : std::nullopt;
  if (!end) return;
  if (*end > *gpu_start_)
    energy.gpu_joules = *end - *gpu_start_;
  else  // a working GPU uses energy: the driver was reloaded, or the run was too short
    energy.gpu_reason = "the energy counter of " + gpu_uuid_ +
                        (*end < *gpu_start_ ? " went back" : " did not move") +
                        " during the measurement";
}

}  // namespace scalemark
