// A long run's machine by time: clocks, temperature, power, memory, load and errors, read by a
// thread of its own while the ranks compute.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/energy.hpp"
#include "platform/nvml.hpp"
#include "platform/periodic.hpp"

namespace scalemark {

/// Mean clock of these logical CPUs, MHz; nullopt where the kernel does not tell (most virtual
/// machines).
std::optional<double> cpu_mhz(const std::vector<int>& cpus,
                              const std::filesystem::path& root = "/");
/// The hottest sensor of the CPUs, degrees Celsius; nullopt where there is none.
std::optional<double> cpu_celsius(const std::filesystem::path& root = "/");
/// What the driver tells of a GPU, into the fields of `reading` that begin with gpu_.
void read_gpu(const NvmlApi& nvml, const NvmlPlace& place, MachineReading& reading);

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
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  std::size_t looks() const { return looks_; }  ///< so far
  /// Looks a last time and ends; in the order of time.
  std::vector<MachineReading> stop();

 private:
  MachineReading look();
  void thin_out();

  Watched watched_;
  double period_seconds_;
  std::filesystem::path root_;
  std::optional<EnergyCounter> energy_;
  std::unique_ptr<Nvml> nvml_;  ///< null without a GPU that it finds
  NvmlPlace place_;
  std::vector<MachineReading> readings_;
  std::atomic<std::size_t> looks_ = 0;
  std::optional<Periodic> thread_;
};

}  // namespace scalemark
