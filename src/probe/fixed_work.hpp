// Noise of a node by fixed work quanta (FWQ, Sottile and Minnich 2004): the same arithmetic again
// and again on one thread; what varies is what the operating system, other processes and the
// hypervisor take. LibTorch-free.
#pragma once

#include <cstdint>
#include <vector>

namespace scalemark {

/// Steps of dependent integer arithmetic that take this thread about `seconds` when nobody disturbs
/// it.
std::int64_t calibrate_quantum(double seconds);

/// Seconds of each quantum of `steps` steps, repeated for `seconds`, at least 10 times.
std::vector<double> repeat_quantum(std::int64_t steps, double seconds);

struct QuantumStatistics {
  double median = 0, mean = 0, p99 = 0;  ///< seconds
  double max_over_min = 0;
};
/// Of one quantum or more.
QuantumStatistics quantum_statistics(const std::vector<double>& seconds);

}  // namespace scalemark
