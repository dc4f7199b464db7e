// Records events of operations, reuses them, and reads their times.
#include "comm/cuda/operation_events.hpp"

#include <algorithm>

namespace scalemark {

double seconds_between(const SharedEvent& from, const SharedEvent& to) {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, *from, *to), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

SharedEvent EventPool::next() {
  const auto free = std::find_if(events_.begin(), events_.end(),
                                 [](const auto& event) { return event.use_count() == 1; });
  if (free != events_.end()) return *free;
  events_.push_back(std::make_shared<CudaEvent>());
  return events_.back();
}

SharedEvent EventPool::record(cudaStream_t stream) {
  SharedEvent event = next();
  check_cuda(cudaEventRecord(*event, stream), "cudaEventRecord");
  return event;
}

std::optional<OperationTimes> OperationEvents::times() const {
  if (!origin || !wait_end) return std::nullopt;
  // The stream passes this event after all others, since it waits for `done` before it.
  const cudaError_t passed = cudaEventQuery(*wait_end);
  if (passed == cudaErrorNotReady) {
    forget_last_error();
    return std::nullopt;
  }
  check_cuda(passed, "cudaEventQuery");
  return OperationTimes{seconds_between(origin, posted), seconds_between(origin, done),
                        seconds_between(origin, wait_begin), seconds_between(origin, wait_end)};
}

}  // namespace scalemark
