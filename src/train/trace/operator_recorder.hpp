// Notes down the operators that LibTorch runs in all threads of this process, through its own
// observers (at::RecordFunction). On a GPU these are the host's calls, which queue work.
#pragma once

#include <cstddef>
#include <memory>

#include "measure/rank_trace.hpp"
#include "models/operator_flops.hpp"

namespace scalemark {

/// One at a time in a process.
class OperatorRecorder {
 public:
  /// Of this thread (number 1) and of those that come; keeps at most `most_spans` spans, and the
  /// totals of all operators.
  explicit OperatorRecorder(std::size_t most_spans);
  /// Ends it.
  ~OperatorRecorder();
  OperatorRecorder(const OperatorRecorder&) = delete;
  OperatorRecorder& operator=(const OperatorRecorder&) = delete;

  /// Operators that start from here on belong to the optimizer, or to the group that their name
  /// says.
  void set_optimizer(bool runs);
  /// Seconds in which this thread has run operators.
  double operator_seconds() const;
  /// Ends it and adds operators, spans, labels and threads to `trace`.
  void take(RankTrace& trace);

  struct Recording;  ///< what all threads share

 private:
  std::shared_ptr<Recording> recording_;
  at::CallbackHandle handle_ = 0;
};

}  // namespace scalemark
