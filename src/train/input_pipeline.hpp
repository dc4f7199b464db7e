// How a step gets its batch: it lies on the device, or it is copied there from host memory while
// the step before computes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "models/model.hpp"
#include "train/device_backend.hpp"

namespace scalemark {

/// The tensors of a batch that are defined.
std::vector<at::Tensor> tensors_of(const Batch& batch);
std::int64_t bytes_of(const std::vector<Batch>& batches);
/// Moves a batch of the host to where `device` can copy it from while it computes.
void pin(Batch& batch, const DeviceBackend& device);

class InputPipeline {
 public:
  virtual ~InputPipeline() = default;
  /// The micro-batches of step `number`, on the device and ready for its current stream. Steps are
  /// taken in order, one after the other; the batches come in turn, number modulo their count.
  virtual const std::vector<Batch>& take(long number) = 0;
  /// Forgets what was counted so far.
  virtual void restart() {}
  /// Of the steps since restart().
  virtual InputSamples samples() = 0;
};

/// `batches` lie where `place` says; `micro_batches` are parts of each of them. They are kept by
/// the caller. host: two buffers on the device, filled in turn.
std::unique_ptr<InputPipeline> make_input_pipeline(
    InputPlace place, DeviceBackend& device, const std::vector<Batch>& batches,
    const std::vector<std::vector<Batch>>& micro_batches);

}  // namespace scalemark
