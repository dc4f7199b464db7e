// Measures the energy of a measurement with the counters of CPU packages and memory (RAPL, through
// the kernel's powercap) and of GPUs (NVML).
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
  double range = 0;   ///< value at which the counter wraps
};
/// Reads the zones below `root`/sys/class/powercap by folder name. Returns no zones where there are
/// none or they can't be read, and sets `reason`.
std::map<std::string, EnergyZone> read_energy_zones(const std::filesystem::path& root,
                                                    std::string& reason);

/// Adds up the counts of the zones across their wraps. It must be read at least once a minute.
class EnergyCounter {
 public:
  explicit EnergyCounter(std::filesystem::path root);
  void read();
  bool has_zones() const { return !zones_.empty(); }
  /// Returns the energy since construction as of the last reading, or nullopt with a reason where
  /// it is unknown.
  std::optional<double> joules() const;
  std::string reason() const;

 private:
  std::filesystem::path root_;
  std::string reason_;
  std::map<std::string, EnergyZone> zones_;  ///< values of the last reading
  double joules_ = 0;
  bool lost_ = false;  ///< a zone could not be read any more
};

/// Returns the joules of a GPU since its driver was loaded. Returns nullopt with a `reason` without
/// NVML, on a GPU before Volta, and for a MIG slice: the GPU has one counter for all slices,
/// visible or not.
std::optional<double> gpu_joules(const std::string& uuid, std::string& reason);

/// The energy used between the start of the meter and its end.
struct Energy {
  std::optional<double> host_joules;  ///< all packages and their memory
  std::optional<double> gpu_joules;
  std::string reason;      ///< why host_joules is missing; empty where it was not asked for
  std::string gpu_reason;  ///< why gpu_joules is not set
};

/// Measures energy from its construction on. RAPL counters wrap within minutes, so a thread reads
/// them once a minute.
class EnergyMeter {
 public:
  /// With `host`, counts the packages of this host; one rank of each host does so. `gpu_uuid` is
  /// empty without a GPU.
  EnergyMeter(bool host, std::string gpu_uuid, std::filesystem::path root = "/",
              double period_seconds = 60);
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  /// Returns the energy of the host up to the last reading of the thread.
  double host_joules_so_far();
  /// Ends the measurement and returns its result.
  Energy stop();

 private:
  void count_gpu(Energy& energy) const;

  std::string gpu_uuid_, gpu_reason_;
  std::optional<double> gpu_start_;
  std::optional<EnergyCounter> host_;
  std::optional<Periodic> thread_;  ///< set where there is something to read
};

// Defines one reading of the machine (platform/machine_watch.hpp).

/// One reading. Values of the whole host are set only where this rank reads them. Joules, seconds
/// and errors are counters, which only grow.
struct MachineReading {
  double at = 0;                           ///< steady_seconds()
  std::optional<double> cpu_mhz;           ///< mean of the CPUs that this process may use
  std::optional<double> memory_bytes;      ///< resident, of this process
  std::optional<double> cpu_celsius;       ///< the hottest sensor of the host's CPUs
  std::optional<double> host_joules;       ///< packages and memory of the host
  std::optional<double> busy_cpu_seconds;  ///< all CPUs and processes of the host
  std::optional<double> nic_errors;        ///< errors and drops of the host's network interfaces
  std::optional<double> gpu_mhz, gpu_celsius, gpu_watts, gpu_memory_bytes;
  std::optional<double> gpu_errors;  ///< ECC errors, including corrected ones
};

}  // namespace scalemark
