// How the gradients of a step get from the backward passes of all ranks to the optimizer: by
// scalemark's own buckets, or by LibTorch's c10d::Reducer (--reducer). Made by make_step_reducer()
// (trainer_impl.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communication_log.hpp"
#include "measure/samples.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// What a step sends, per rank.
struct StepTraffic {
  std::int64_t bytes = 0;       ///< payload, as it travels
  std::int64_t wire_bytes = 0;  ///< sent by the communicator's stated algorithm
  std::int64_t messages = 0;    ///< collectives started
};

class StepReducer {
 public:
  virtual ~StepReducer() = default;
  /// Before the forward pass of a micro-batch: gradients of the first start anew, those of the last
  /// are summed over the ranks, as its backward pass computes them.
  virtual void begin_pass(bool first, bool last) = 0;
  /// After the last backward pass: waits for the sums. `on_sum(i)` is called as soon as
  /// buckets()[i] and those before it are summed.
  virtual void finalize(const std::function<void(std::size_t bucket)>& on_sum = {}) = 0;
  /// Whether a step may go on without sums: start_rest() and wait() in place of finalize().
  virtual bool runs_on() const { return false; }
  /// After the last backward pass: all sums are on their way.
  virtual void start_rest() {}
  /// For the sum of buckets()[bucket], which must be there before gradients are added to it again.
  virtual void wait(std::size_t /*bucket*/) {}
  /// Whether that sum is there; on the CPU, false elsewhere.
  virtual bool is_complete(std::size_t /*bucket*/) const { return false; }
  /// What the optimizer updates: every parameter lies in one of them. Valid until begin_pass(), or
  /// for good where the step runs on.
  virtual std::vector<Bucket>& buckets() = 0;

  /// Of the steps since the last call; after DeviceBackend::synchronize(). Waits are those for sums
  /// after the last backward pass, NaN where they are not known; communication_seconds is 0 there.
  virtual CommunicationTimes take_times() = 0;
  /// From here on take_times() hands out every operation too, where they are known.
  virtual void keep_operations() {}
  /// Whether it waits before the last backward pass returns, not in finalize().
  virtual bool waits_in_backward() const { return false; }
  virtual StepTraffic traffic() const = 0;
  /// What the gradients of embedding tables cost since the last call, but for exchange_seconds.
  virtual EmbeddingSamples take_embedding() { return {}; }
};

}  // namespace scalemark
