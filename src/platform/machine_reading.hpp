// What a look at the machine finds (platform/machine_watch.hpp).
#pragma once

#include <optional>

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

}  // namespace scalemark
