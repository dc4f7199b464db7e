// Records the state of the machine during a long run: clocks, temperature, power, memory, load and
// errors. A separate thread reads them while the ranks compute.
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

/// Returns the mean clock of these logical CPUs in MHz, or nullopt where the kernel does not report
/// it (most virtual machines).
std::optional<double> cpu_mhz(const std::vector<int>& cpus,
                              const std::filesystem::path& root = "/");
/// Returns the temperature of the hottest CPU sensor in degrees Celsius, or nullopt where there is
/// none.
std::optional<double> cpu_celsius(const std::filesystem::path& root = "/");
/// Fills the fields of `reading` that begin with gpu_ with what the driver reports.
void read_gpu(const NvmlApi& nvml, const NvmlPlace& place, MachineReading& reading);

/// Defines what a watch reads.
struct Watched {
  std::vector<int> cpus;  ///< CPUs that this process may use
  bool host = false;      ///< one rank of a host looks at it
  std::string gpu_uuid;   ///< empty without a GPU
};

/// Reads the machine periodically on a separate thread.
class MachineWatch {
 public:
  /// At most this many readings are kept. When there are more, every second one is dropped and the
  /// period doubles, so that the memory use does not depend on the length of the run.
  static constexpr std::size_t kMostReadings = 2000;

  MachineWatch(Watched watched, double period_seconds, std::filesystem::path root = "/");
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  std::size_t looks() const { return looks_; }  ///< so far
  /// Takes a last reading, ends the thread and returns all readings in the order of time.
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
