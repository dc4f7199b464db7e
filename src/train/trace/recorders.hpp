// Records the operators that LibTorch runs in all threads of this process, through its own
// observers (at::RecordFunction), and what a GPU computes and copies, through Kineto, which is part
// of LibTorch and reads it from CUPTI. With a GPU the operators are the calls of the host, which
// queue work.
#pragma once

#include <cstddef>
#include <memory>

#include "measure/rank_trace.hpp"
#include "models/operator_flops.hpp"

namespace scalemark {

/// Records operators. There can be one at a time in a process.
class OperatorRecorder {
 public:
  /// Records this thread (number 1) and those that follow. It keeps at most `most_spans` spans, and
  /// the totals of all operators.
  explicit OperatorRecorder(std::size_t most_spans);
  /// Ends the recording.
  ~OperatorRecorder();
  OperatorRecorder(const OperatorRecorder&) = delete;
  OperatorRecorder& operator=(const OperatorRecorder&) = delete;

  /// Says whether operators that start from now on belong to the optimizer, or to the group of
  /// their name.
  void set_optimizer(bool runs);
  /// Returns the seconds in which this thread has run operators.
  double operator_seconds() const;
  /// Ends the recording and adds operators, spans, labels and threads to `trace`.
  void take(RankTrace& trace);

  struct Recording;  ///< shared by all threads

 private:
  std::shared_ptr<Recording> recording_;
  at::CallbackHandle handle_ = 0;
};

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
