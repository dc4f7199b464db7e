// Energy that a measurement takes: counters of CPU packages and memory (RAPL, through the kernel's
// powercap) and of GPUs (NVML).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "platform/periodic.hpp"

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

/// Adds up what the zones count, across their wraps; read at least once a minute.
class EnergyCounter {
 public:
  explicit EnergyCounter(std::filesystem::path root);
  void read();
  bool has_zones() const { return !zones_.empty(); }
  /// Since the construction, as last read; nullopt with a reason where that is not known.
  std::optional<double> joules() const;
  std::string reason() const;

 private:
  std::filesystem::path root_;
  std::string reason_;
  std::map<std::string, EnergyZone> zones_;  ///< as last read
  double joules_ = 0;
  bool lost_ = false;  ///< a zone could not be read any more
};

/// Joules of a GPU since its driver was loaded; nullopt with a `reason` without NVML, before Volta,
/// and of a MIG slice: its GPU has one counter for all slices, seen here or not.
std::optional<double> gpu_joules(const std::string& uuid, std::string& reason);

/// What was used between the meter's start and its end.
struct Energy {
  std::optional<double> host_joules;  ///< of all packages and their memory
  std::optional<double> gpu_joules;
  std::string reason;      ///< why host_joules is missing; empty where it was not asked for
  std::string gpu_reason;  ///< the same of gpu_joules
};

/// Counts from its construction on. RAPL counters wrap within minutes, so a thread reads them once
/// a minute.
class EnergyMeter {
 public:
  /// `host`: count this host's packages (one rank of a host does); `gpu_uuid`: empty without a GPU.
  EnergyMeter(bool host, std::string gpu_uuid, std::filesystem::path root = "/",
              double period_seconds = 60);
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  /// Of the host, as far as the thread has read.
  double host_joules_so_far();
  /// Ends the measurement.
  Energy stop();

 private:
  void count_gpu(Energy& energy) const;

  std::string gpu_uuid_, gpu_reason_;
  std::optional<double> gpu_start_;
  std::optional<EnergyCounter> host_;
  std::optional<Periodic> thread_;  ///< where there is something to read
};

// What a look at the machine finds (platform/machine_watch.hpp).

/// One look. Of the whole host only where this rank looks at it. Counters, which only grow: joules,
/// seconds and errors.
struct MachineReading {
  double at = 0;                           ///< steady_seconds()
  std::optional<double> cpu_mhz;           ///< mean of the CPUs that this process may use
  std::optional<double> memory_bytes;      ///< resident, of this process
  std::optional<double> cpu_celsius;       ///< the hottest sensor of the host's CPUs
  std::optional<double> host_joules;       ///< of the host's packages and memory
  std::optional<double> busy_cpu_seconds;  ///< of all CPUs and processes of the host
  std::optional<double> nic_errors;        ///< errors and drops of the host's network interfaces
  std::optional<double> gpu_mhz, gpu_celsius, gpu_watts, gpu_memory_bytes;
  std::optional<double> gpu_errors;  ///< of ECC, corrected ones too
};

}  // namespace scalemark
