// Notes down what a GPU computes and copies, through Kineto, which LibTorch brings and which reads
// it from CUPTI.
#pragma once

#include <cstddef>

#include "measure/rank_trace.hpp"

namespace scalemark {

/// One at a time in a process, used by one thread.
class KernelRecorder {
 public:
  /// Of what runs from here on, on all streams; keeps at most `most_spans`. `of_host`: the
  /// operators of this process in their place, which need no GPU. Throws c10::Error.
  explicit KernelRecorder(std::size_t most_spans, bool of_host = false);
  /// Ends it.
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  /// Ends it; the device must have ended its work. Adds a thread for every stream, numbered from
  /// kFirstStream on, and spans of the categories "kernel" and "copy". Where CUPTI gives nothing
  /// (another profiler holds it, no permission) there are none. Throws c10::Error.
  void take(RankTrace& trace);

  static constexpr int kFirstStream = 2000;

 private:
  std::size_t most_spans_;
  bool of_host_;
  bool records_ = false;
  double steady_minus_unix_;  ///< seconds; Kineto counts Unix time
};

}  // namespace scalemark
