// A long run's machine by time: clocks, temperature, power, memory, load and errors, read by a
// thread of its own while the ranks compute.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "platform/energy.hpp"
#include "platform/nvml.hpp"

namespace scalemark {

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

/// Mean clock of these logical CPUs, MHz; nullopt where the kernel does not tell (most virtual
/// machines).
std::optional<double> cpu_mhz(const std::vector<int>& cpus,
                              const std::filesystem::path& root = "/");
/// The hottest sensor of the CPUs, degrees Celsius; nullopt where there is none.
std::optional<double> cpu_celsius(const std::filesystem::path& root = "/");
/// What the driver tells of a GPU, into the fields of `reading` that begin with gpu_.
void read_gpu(const NvmlApi& nvml, NvmlDevice gpu, MachineReading& reading);

/// What a watch looks at.
struct Watched {
  std::vector<int> cpus;  ///< that this process may use
  bool host = false;      ///< one rank of a host looks at it
  std::string gpu_uuid;   ///< empty without a GPU
};

class MachineWatch {
 public:
  /// Of the readings that are kept at most: then every second one is dropped and the period
  /// doubles, so that a run of any length costs the same memory.
  static constexpr std::size_t kMostReadings = 2000;

  MachineWatch(Watched watched, double period_seconds, std::filesystem::path root = "/");
  ~MachineWatch();
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  std::size_t looks() const { return looks_; }  ///< so far
  /// Looks a last time and ends; in the order of time.
  std::vector<MachineReading> stop();

 private:
  void watch();
  MachineReading look();
  void end_thread();

  Watched watched_;
  double period_seconds_;
  std::filesystem::path root_;
  std::optional<EnergyCounter> energy_;
  std::unique_ptr<Nvml> nvml_;  ///< null without a GPU that it finds
  NvmlDevice gpu_ = nullptr;
  std::vector<MachineReading> readings_;
  std::atomic<std::size_t> looks_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace scalemark
