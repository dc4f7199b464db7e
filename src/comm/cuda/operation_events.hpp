// Internal to comm/cuda/: when an operation of a stream began and ended, by events that the host
// reads later.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/cuda/check.hpp"

namespace scalemark {

using SharedEvent = std::shared_ptr<CudaEvent>;

/// Events that are used again once nobody holds them: making one takes as long as recording it, and
/// a step needs the same few again and again.
class EventPool {
 public:
  SharedEvent next();
  /// next(), recorded on `stream`.
  SharedEvent record(cudaStream_t stream);

 private:
  std::vector<SharedEvent> events_;
};

/// On the device's clock; both must have passed. Throws CommError.
double seconds_between(const SharedEvent& from, const SharedEvent& to);

/// Marks of one operation, each set when the streams pass that point.
struct OperationEvents {
  SharedEvent origin;  ///< of OperationTimes; null: nobody asked for times
  SharedEvent posted, done, wait_begin, wait_end;

  /// nullopt while one of them is not passed. Throws CommError where the device has failed.
  std::optional<OperationTimes> times() const;
};

}  // namespace scalemark
