// Records the operators that LibTorch runs in all threads of this process, through its own
// observers (at::RecordFunction). With a GPU these are the calls of the host, which queue work.
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

}  // namespace scalemark
