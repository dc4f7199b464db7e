// Records what communication cost the steps of a rank, from the times of its operations. On a
// device that works behind the host these are known some steps late. LibTorch-free.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "measure/samples.hpp"

namespace scalemark {

/// Describes what an operation carries.
struct OperationLoad {
  bool of_table = false;   ///< gradients of an embedding table
  int bucket = -1;         ///< the bucket that it sums; -1: none
  std::int64_t bytes = 0;  ///< of the whole buffer, in the wire type
  Collective collective = Collective::allreduce;
};

/// The load and the times of an operation of one step.
struct LoggedOperation {
  std::size_t step = 0;  ///< index among the steps of CommunicationTimes, from 0
  OperationLoad load;
  OperationTimes times;
};

/// The times of consecutive steps.
struct CommunicationTimes {
  std::vector<double>
      wait_seconds;  ///< for each step: nothing was computed because a result was missing
  /// Sum of: first operation posted to last one done. Where a step also awaits those that the step
  /// before has started: the time in which one or more were under way.
  double communication_seconds = 0;
  double table_seconds = 0;  ///< sum of: the longest that carries gradients of tables
  std::vector<CollectiveSamples> collectives;  ///< sums; those that were used
  std::vector<LoggedOperation> operations;     ///< each by itself, where they are kept
};

/// Collects the operations of each step and returns their times once they are known.
class CommunicationLog {
 public:
  /// Makes take() return every single operation too, from now on.
  void keep_operations() { keeps_operations_ = true; }
  /// Adds an operation of the current step, after its wait().
  void add(std::unique_ptr<Pending> operation, const OperationLoad& load);
  /// Adds a wait of the current step that belongs to no operation.
  void add_wait(double seconds) { step_.wait_seconds += seconds; }
  void end_step();
  /// Returns the times of the steps since the last call. All of them must have ended on the device
  /// too (DeviceBackend::synchronize()). Throws CommError otherwise, and where the device has
  /// failed.
  CommunicationTimes take();

 private:
  struct Step {
    std::vector<std::pair<std::unique_ptr<Pending>, OperationLoad>> operations;
    double wait_seconds = 0;
  };

  void add(const CollectiveSamples& of_step, Collective collective);
  void read();
  bool read(const Step& step);

  Step step_;
  std::deque<Step> unread_;
  CommunicationTimes times_;
  bool keeps_operations_ = false;
};

}  // namespace scalemark
