// What a host does without LibTorch: the triad of STREAM, and fixed work again and again; and how
// long a probe goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scalemark {

// How long a probe goes on: for so many seconds, and often enough to say something.

/// Seconds of each call of `timed`, which returns them: at least `fewest` calls, and more until
/// they add up to `seconds`.
template <typename F>
std::vector<double> repeat_for(double seconds, std::size_t fewest, F timed) {
  std::vector<double> times;
  double spent = 0;
  while (times.size() < fewest || spent < seconds) {
    times.push_back(timed());
    spent += times.back();
  }
  return times;
}

/// Bytes of one triad over arrays of `elements` doubles as STREAM counts them: two read and one
/// written, 24 an element; the line that a write may load first is not counted.
constexpr std::int64_t triad_bytes(std::int64_t elements) { return 3 * 8 * elements; }

struct MemoryBandwidth {
  double bytes_per_second = 0;       ///< bytes of all passes / their time
  double best_bytes_per_second = 0;  ///< of the fastest pass, which is what STREAM states
  std::int64_t array_bytes = 0;      ///< of each of the three arrays
  int passes = 0;
};

/// `threads` threads have a part of the arrays each, which they touch first. At least 3 passes over
/// arrays of `elements` doubles, for about `seconds`. Throws RunError where an element is wrong.
MemoryBandwidth measure_memory_bandwidth(int threads, std::int64_t elements, double seconds);

// Noise of a node by fixed work quanta (FWQ, Sottile and Minnich 2004): the same arithmetic again
// and again on one thread; what varies is what the operating system, other processes and the
// hypervisor take. LibTorch-free.

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
