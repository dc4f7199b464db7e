// Records what a GPU computes and copies, through Kineto, which is part of LibTorch and reads it
// from CUPTI.
#pragma once

#include <cstddef>

#include "measure/rank_trace.hpp"

namespace scalemark {

/// Records kernels. There can be one at a time in a process, used by one thread.
class KernelRecorder {
 public:
  /// Records what runs from now on, on all streams, and keeps at most `most_spans`. With `of_host`,
  /// the operators of this process are recorded instead, which needs no GPU. Throws c10::Error.
  explicit KernelRecorder(std::size_t most_spans, bool of_host = false);
  /// Ends the recording.
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  /// Ends the recording; the device must have finished its work. Adds a thread for every stream,
  /// numbered from kFirstStream on, and spans of the categories "kernel" and "copy". Where CUPTI
  /// provides nothing (another profiler holds it, no permission) there are none. Throws c10::Error.
  void take(RankTrace& trace);

  static constexpr int kFirstStream = 2000;

 private:
  std::size_t most_spans_;
  bool of_host_;
  bool records_ = false;
  double steady_minus_unix_;  ///< seconds; Kineto counts Unix time
};

}  // namespace scalemark
