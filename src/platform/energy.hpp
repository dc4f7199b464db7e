// Energy that a measurement takes: counters of CPU packages and memory (RAPL, through the kernel's
// powercap) and of GPUs (NVML).
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace scalemark {

/// A RAPL zone: package or dram.
struct EnergyZone {
  double joules = 0;  ///< since the machine started, modulo range
  double range = 0;   ///< where the counter starts again
};
/// Zones below `root`/sys/class/powercap by folder name; empty where there are none or they can't
/// be read, with `reason`.
std::map<std::string, EnergyZone> read_energy_zones(const std::filesystem::path& root,
                                                    std::string& reason);

/// Joules of a GPU since its driver was loaded; nullopt without NVML or before Volta.
std::optional<double> gpu_joules(const std::string& uuid);

/// What was used between the meter's start and its end.
struct Energy {
  std::optional<double> host_joules;  ///< of all packages and their memory
  std::optional<double> gpu_joules;
  std::string reason;  ///< why host_joules is missing; empty where it was not asked for
};

/// Counts from its construction on. RAPL counters wrap within minutes, so a thread reads them once
/// a minute.
class EnergyMeter {
 public:
  /// `host`: count this host's packages (one rank of a host does); `gpu_uuid`: empty without a GPU.
  EnergyMeter(bool host, std::string gpu_uuid, std::filesystem::path root = "/",
              double period_seconds = 60);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  /// Of the host, as far as the thread has read.
  double host_joules_so_far();
  /// Ends the measurement.
  Energy stop();

 private:
  void watch();
  void read();

  std::filesystem::path root_;
  double period_seconds_;
  std::string gpu_uuid_, reason_;
  std::optional<double> gpu_start_;
  std::map<std::string, EnergyZone> zones_;  ///< as last read
  double joules_ = 0;
  bool lost_ = false;  ///< a zone could not be read any more
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace scalemark
