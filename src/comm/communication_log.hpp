// What communication cost the steps of a rank, from the times of its operations. On a device that
// works behind the host these are known some steps late. LibTorch-free.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"

namespace scalemark {

/// What an operation carries.
struct OperationLoad {
  bool of_table = false;   ///< gradients of an embedding table
  int bucket = -1;         ///< that it sums; -1: none
  std::int64_t bytes = 0;  ///< of this rank, as they travel
};

struct LoggedOperation {
  std::size_t step = 0;  ///< of those that CommunicationTimes are of, from 0
  OperationLoad load;
  OperationTimes times;
};

/// Of consecutive steps.
struct CommunicationTimes {
  std::vector<double> wait_seconds;  ///< by step: nothing was computed for want of a result
  double communication_seconds = 0;  ///< sum of: first operation posted to last one done
  double table_seconds = 0;          ///< sum of: the longest that carries gradients of tables
  std::vector<LoggedOperation> operations;  ///< each by itself, where they are kept
};

class CommunicationLog {
 public:
  /// From here on take() hands out every operation too.
  void keep_operations() { keeps_operations_ = true; }
  /// An operation of the step under way, after its wait().
  void add(std::unique_ptr<Pending> operation, const OperationLoad& load);
  /// A wait of the step under way of which no operation tells.
  void add_wait(double seconds) { step_.wait_seconds += seconds; }
  void end_step();
  /// Of the steps since the last call, all of which must have ended on the device too
  /// (DeviceBackend::synchronize()); else CommError, as where the device has failed.
  CommunicationTimes take();

 private:
  struct Step {
    std::vector<std::pair<std::unique_ptr<Pending>, OperationLoad>> operations;
    double wait_seconds = 0;
  };

  void read();
  bool read(const Step& step);

  Step step_;
  std::deque<Step> unread_;
  CommunicationTimes times_;
  bool keeps_operations_ = false;
};

}  // namespace scalemark
