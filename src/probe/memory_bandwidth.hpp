// What a host does without LibTorch: the triad of STREAM, and fixed work again and again; and how
// long a probe goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scalemark {

// Repeats a probe for a given time and often enough for a result.

/// Returns the seconds of each call of `timed`, which returns them. It makes at least `fewest`
/// calls, and more until they add up to `seconds`.
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

/// Returns the bytes of one triad over arrays of `elements` doubles as STREAM counts them: two read
/// and one written, 24 for each element. The cache line that a write may load first is not counted.
constexpr std::int64_t triad_bytes(std::int64_t elements) { return 3 * 8 * elements; }

/// The bandwidth of the triad and the size of its arrays.
struct MemoryBandwidth {
  double bytes_per_second = 0;       ///< bytes of all passes / their time
  double best_bytes_per_second = 0;  ///< rate of the fastest pass, which is what STREAM reports
  std::int64_t array_bytes = 0;      ///< size of each of the three arrays
  int passes = 0;
};

/// Runs the triad on `threads` threads. Each has a part of the arrays, which it touches first.
/// There are at least 3 passes over arrays of `elements` doubles, for about `seconds`. Throws
/// RunError where an element is wrong.
MemoryBandwidth measure_memory_bandwidth(int threads, std::int64_t elements, double seconds);

// Measures the noise of a node by fixed work quanta (FWQ, Sottile and Minnich 2004): the same
// arithmetic is repeated on one thread, and its time varies by what the operating system, other
// processes and the hypervisor take. LibTorch-free.

/// Returns the number of steps of dependent integer arithmetic that take this thread about
/// `seconds` when nothing disturbs it.
std::int64_t calibrate_quantum(double seconds);

/// Returns the seconds of each quantum of `steps` steps, repeated for `seconds` and at least 10
/// times.
std::vector<double> repeat_quantum(std::int64_t steps, double seconds);

/// The statistics of the times of fixed work quanta.
struct QuantumStatistics {
  std::size_t samples = 0;
  double median = 0, mean = 0;  ///< seconds, of all quanta
  double best_mean = 0;         ///< mean of the block in which it is least
  double p99 = 0, max_over_min = 0;
};
/// Summarises one block or more, each of one quantum or more. What slows a rank permanently,
/// including a CPU quota, also slows its best block; a brief disturbance does not.
QuantumStatistics quantum_statistics(const std::vector<std::vector<double>>& blocks);

}  // namespace scalemark
