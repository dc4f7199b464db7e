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
  std::size_t samples = 0;
  double median = 0, mean = 0;  ///< seconds, of all quanta
  double best_mean = 0;         ///< mean of the block in which it is least
  double p99 = 0, max_over_min = 0;
};
/// Of one block or more, each of one quantum or more. What slows a rank always, a quota too, slows
/// its best block; what disturbs it for a moment does not.
QuantumStatistics quantum_statistics(const std::vector<std::vector<double>>& blocks);

}  // namespace scalemark
