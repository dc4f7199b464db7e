// Memory bandwidth by the triad of STREAM (McCalpin 1995): a[i] = b[i] + s c[i]. LibTorch-free.
#pragma once

#include <cstdint>

namespace scalemark {

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

}  // namespace scalemark
