// Brings the gradients of a step from the backward passes of all ranks to the optimizer: by
// scalemark's own buckets, or by LibTorch's c10d::Reducer (--reducer). It is made by
// make_step_reducer() (trainer_impl.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communication_log.hpp"
#include "measure/samples.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// What a step sends, for each rank.
struct StepTraffic {
  std::int64_t bytes = 0;       ///< payload, as it travels
  std::int64_t wire_bytes = 0;  ///< sent by the communicator's stated algorithm
  std::int64_t messages = 0;    ///< collectives started
};

/// What a reducer has recorded of the steps since the last time it was asked.
struct ReducerSamples {
  /// Waits are those for sums after the last backward pass, NaN where they are unknown;
  /// communication_seconds is 0 there.
  CommunicationTimes times;
  /// The waits were inside the last backward pass, and not in finalize().
  bool waited_in_backward = false;
  StepTraffic traffic;  ///< of each step
  /// The cost of the gradients of embedding tables, except for exchange_seconds.
  EmbeddingSamples embedding;
};

/// Sums the gradients of a step over ranks into the buckets that the optimizer updates.
class StepReducer {
 public:
  virtual ~StepReducer() = default;
  /// Begins a micro-batch, before its forward pass. Gradients of the first one overwrite those
  /// before; those of the last one are summed over the ranks as its backward pass computes them.
  virtual void begin_pass(bool first, bool last) = 0;
  /// Waits for the sums, after the last backward pass. `on_sum(i)` is called as soon as
  /// buckets()[i] and those before it are summed.
  virtual void finalize(const std::function<void(std::size_t bucket)>& on_sum = {}) = 0;
  /// Call it after the update of buckets()[bucket].
  virtual void updated(std::size_t /*bucket*/) {}
  /// Completes what continues after finalize(), before others read weights.
  virtual void settle() {}
  /// Sets a function that is called when a wait inside a pass or settle() begins, and ends.
  virtual void set_on_wait(std::function<void(bool begins)> /*on_wait*/) {}
  /// Returns the sum over those ranks of which each updates a part of every bucket; else the value.
  virtual at::Tensor sum_over_shards(const at::Tensor& value) { return value; }
  /// Returns what the optimizer updates: every parameter is in one of these buckets. They are valid
  /// until begin_pass(), or permanently where the reducer is an AsynchronousReducer.
  virtual std::vector<Bucket>& buckets() = 0;
  /// Call it after DeviceBackend::synchronize().
  virtual ReducerSamples take_samples() = 0;
  /// Makes take_samples() return every single operation too, from now on, where they are known.
  virtual void keep_operations() = 0;
};

/// What a StepReducer also is whose steps may continue without sums (--overlap step), with
/// start_rest() and wait() in place of finalize().
class AsynchronousReducer {
 public:
  virtual ~AsynchronousReducer() = default;
  /// Starts all sums that have not started, after the last backward pass.
  virtual void start_rest() = 0;
  /// Waits for the sum of buckets()[bucket]. It must be complete before gradients are added to that
  /// bucket again.
  virtual void wait(std::size_t bucket) = 0;
  /// Returns whether the sum of buckets()[bucket] is complete; on the CPU, false elsewhere.
  virtual bool is_complete(std::size_t bucket) const = 0;
};

}  // namespace scalemark
