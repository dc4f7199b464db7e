// Provides a step with its batch, which is on the device already or is copied there from host
// memory while the step before computes.
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

/// Returns the tensors of a batch that are defined.
std::vector<at::Tensor> tensors_of(const Batch& batch);
std::int64_t bytes_of(const std::vector<Batch>& batches);
/// Moves a batch on the host to memory from which `device` can copy while it computes.
void pin(Batch& batch, const DeviceBackend& device);

/// Provides every step with its batch.
class InputPipeline {
 public:
  virtual ~InputPipeline() = default;
  /// Returns the micro-batches of step `number`, on the device and ready for its current stream.
  /// Steps are taken in order, one after the other; they use the batches in turn, by number modulo
  /// their count.
  virtual const std::vector<Batch>& take(long number) = 0;
  /// Resets what was counted so far.
  virtual void restart() {}
  /// Returns the samples of the steps since restart().
  virtual InputSamples samples() = 0;
};

/// Makes a pipeline. `batches` are stored where `place` says; `micro_batches` are parts of each of
/// them. The caller keeps them. From the host, two buffers on the device are filled alternately.
std::unique_ptr<InputPipeline> make_input_pipeline(
    InputPlace place, DeviceBackend& device, const std::vector<Batch>& batches,
    const std::vector<std::vector<Batch>>& micro_batches);

}  // namespace scalemark
