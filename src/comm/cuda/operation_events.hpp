// Records when an operation of a stream began and ended, with events that the host reads later. It
// is internal to comm/cuda/.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/cuda/runtime.hpp"

namespace scalemark {

using SharedEvent = std::shared_ptr<CudaEvent>;

/// Reuses events that nobody holds any more. Creating one takes as long as recording it, and every
/// step needs about the same number.
class EventPool {
 public:
  SharedEvent next();
  /// Returns a free event, recorded on `stream`.
  SharedEvent record(cudaStream_t stream);

 private:
  std::vector<SharedEvent> events_;
};

/// Returns the seconds between two events on the device's clock. Both must have passed. Throws
/// CommError.
double seconds_between(const SharedEvent& from, const SharedEvent& to);

/// The events of one operation, each recorded where the streams pass that point.
struct OperationEvents {
  SharedEvent origin;  ///< origin of OperationTimes; null: no times were requested
  SharedEvent posted, done, wait_begin, wait_end;

  /// Returns the times, or nullopt while one of the events has not passed. Throws CommError where
  /// the device has failed.
  std::optional<OperationTimes> times() const;
};

}  // namespace scalemark
