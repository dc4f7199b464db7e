// Reads clocks, temperatures, power, memory and errors periodically while the ranks compute.
#include "platform/machine_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

#include "measure/clock.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// These drivers serve the temperature sensors of x86 and ARM CPUs.
const std::set<std::string> kCpuSensors{"coretemp", "k10temp", "zenpower", "cpu_thermal"};

void keep_most(std::optional<double>& most, const std::optional<double>& other) {
  if (other && (!most || *other > *most)) most = other;
}

std::optional<double> number_in(const fs::path& file) {
  const auto text = read_text(file);
  return text ? to_number(*text) : std::nullopt;
}

/// Returns the resident set of this process: the second number of statm, in pages.
std::optional<double> resident_bytes() {
  std::istringstream words(read_text("/proc/self/statm").value_or(""));
  double all = 0, resident = 0;
  if (!(words >> all >> resident)) return std::nullopt;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<double> cpu_mhz(const std::vector<int>& cpus, const fs::path& root) {
  double sum = 0, count = 0;
  for (const int cpu : cpus) {
    const auto khz = number_in(root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                               "cpufreq/scaling_cur_freq");
    if (!khz) continue;
    sum += *khz / 1000;
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::optional<double> cpu_celsius(const fs::path& root) {
  std::optional<double> most;
  std::error_code error;
  for (const auto& chip : fs::directory_iterator(root / "sys/class/hwmon", error)) {
    if (!kCpuSensors.contains(read_text(chip.path() / "name").value_or(""))) continue;
    for (const auto& file : fs::directory_iterator(chip.path(), error)) {
      const std::string name = file.path().filename();
      if (!name.starts_with("temp") || !name.ends_with("_input")) continue;
      if (const auto value = number_in(file.path())) keep_most(most, *value / 1000);
    }
  }
  return most;
}

void read_gpu(const NvmlApi& nvml, const NvmlPlace& place, MachineReading& reading) {
  unsigned value = 0;
  if (nvml.clock != nullptr && nvml.clock(place.gpu, kNvmlSm, &value) == 0) reading.gpu_mhz = value;
  if (nvml.temperature != nullptr && nvml.temperature(place.gpu, kNvmlGpuSensor, &value) == 0)
    reading.gpu_celsius = value;
  NvmlMemory memory{};
  if (nvml.memory != nullptr && nvml.memory(place.device, &memory) == 0)
    reading.gpu_memory_bytes = static_cast<double>(memory.used);
  if (place.device != place.gpu) return;  // ranks on slices of one GPU would count these twice
  if (nvml.power != nullptr && nvml.power(place.gpu, &value) == 0)
    reading.gpu_watts = value / 1000.;
  if (const auto errors = read_ecc_errors(nvml, place.gpu))
    reading.gpu_errors = static_cast<double>(errors->corrected + errors->uncorrected);
}

MachineWatch::MachineWatch(Watched watched, double period_seconds, fs::path root)
    : watched_(std::move(watched)), period_seconds_(period_seconds), root_(std::move(root)) {
  if (watched_.host) energy_.emplace(root_);
  if (!watched_.gpu_uuid.empty()) {
    nvml_ = std::make_unique<Nvml>();
    if (!nvml_->reason.empty() || !find_place(*nvml_, watched_.gpu_uuid, place_).empty())
      nvml_.reset();
  }
  readings_.push_back(look());
  thread_.emplace(period_seconds_, [this] {
    readings_.push_back(look());
    if (readings_.size() >= kMostReadings) thin_out();
    return period_seconds_;
  });
}

MachineReading MachineWatch::look() {
  ++looks_;
  MachineReading now;
  now.at = steady_seconds();
  now.cpu_mhz = scalemark::cpu_mhz(watched_.cpus, root_);
  now.memory_bytes = resident_bytes();
  if (watched_.host) {
    now.cpu_celsius = scalemark::cpu_celsius(root_);
    energy_->read();
    now.host_joules = energy_->joules();
    const NoiseSnapshot noise = noise_snapshot();
    now.busy_cpu_seconds = noise.busy_cpu_seconds;
    for (const auto& [nic, errors] : noise.nic_errors)
      now.nic_errors = now.nic_errors.value_or(0) + static_cast<double>(errors);
  }
  if (nvml_) read_gpu(*nvml_, place_, now);
  return now;
}

void MachineWatch::thin_out() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < readings_.size(); i += 2) readings_[kept++] = readings_[i];
  readings_.resize(kept);
  period_seconds_ *= 2;
}

std::vector<MachineReading> MachineWatch::stop() {
  thread_->stop();
  readings_.push_back(look());
  return std::move(readings_);
}

}  // namespace scalemark
