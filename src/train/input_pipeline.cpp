// Provides batches that are on the device or are copied there during the step before.
#include "train/input_pipeline.hpp"

#include <array>

#include "train/device_backend.hpp"

namespace scalemark {
namespace {

/// Returns every tensor of a batch, including unused ones.
std::vector<at::Tensor*> members(Batch& batch) {
  std::vector<at::Tensor*> all{&batch.inputs,       &batch.targets,  &batch.decoder_inputs,
                               &batch.padding,      &batch.segments, &batch.masked_positions,
                               &batch.next_sentence};
  for (at::Tensor& input : batch.more_inputs) all.push_back(&input);
  return all;
}

class DeviceInput : public InputPipeline {
 public:
  explicit DeviceInput(const std::vector<std::vector<Batch>>& micro_batches)
      : micro_batches_(micro_batches) {}
  const std::vector<Batch>& take(long number) override {
    return micro_batches_[static_cast<std::size_t>(number) % micro_batches_.size()];
  }
  InputSamples samples() override { return {}; }

 private:
  const std::vector<std::vector<Batch>>& micro_batches_;
};

class HostInput : public InputPipeline {
 public:
  HostInput(DeviceBackend& device, const std::vector<Batch>& batches,
            const std::vector<std::vector<Batch>>& micro_batches)
      : device_(device.device()),
        copier_(device.make_batch_copier()),
        batches_(batches),
        micro_batches_(micro_batches) {}

  const std::vector<Batch>& take(long number) override {
    if (number != started_) start(number);
    copier_->wait();
    start(number + 1);
    return slots_[static_cast<std::size_t>(number) % slots_.size()].micro_batches;
  }
  void restart() override { copier_->restart(); }
  InputSamples samples() override {
    const CopyTimes times = copier_->times();
    return {InputPlace::host, bytes_of(batches_) / static_cast<std::int64_t>(batches_.size()),
            times.copy_seconds, times.wait_seconds};
  }

 private:
  struct Slot {
    Batch batch;                       ///< on the device
    std::vector<Batch> micro_batches;  ///< views of it
  };

  /// Starts a copy into the slot that the step before last has used. On the device, that step comes
  /// first.
  void start(long number) {
    const std::size_t turn = static_cast<std::size_t>(number) % batches_.size();
    Slot& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
    Batch from = batches_[turn];
    slot.batch.more_inputs.resize(from.more_inputs.size());
    const auto sources = members(from), targets = members(slot.batch);
    std::vector<TensorCopy> copies;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const at::Tensor& source = *sources[i];
      at::Tensor& target = *targets[i];
      if (!source.defined()) {
        target = at::Tensor();
        continue;
      }
      if (!target.defined() || target.sizes() != source.sizes() ||
          target.strides() != source.strides())
        target = at::empty_strided(source.sizes(), source.strides(),
                                   source.options().device(device_).pinned_memory(false));
      copies.push_back({source, target});
    }
    slot.batch.units = from.units;
    slot.batch.loss_count = from.loss_count;
    slot.batch.padded_units = from.padded_units;
    slot.micro_batches = split(slot.batch, micro_batches_[turn].front().inputs.size(0));
    copier_->start(std::move(copies));
    started_ = number;
  }

  at::Device device_;
  std::unique_ptr<BatchCopier> copier_;
  const std::vector<Batch>& batches_;
  const std::vector<std::vector<Batch>>& micro_batches_;
  std::array<Slot, 2> slots_;
  long started_ = -1;  ///< the step whose batch was asked for last
};

}  // namespace

std::vector<at::Tensor> tensors_of(const Batch& batch) {
  Batch same = batch;
  std::vector<at::Tensor> tensors;
  for (const at::Tensor* tensor : members(same))
    if (tensor->defined()) tensors.push_back(*tensor);
  return tensors;
}

std::int64_t bytes_of(const std::vector<Batch>& batches) {
  std::int64_t bytes = 0;
  for (const Batch& batch : batches)
    for (const at::Tensor& tensor : tensors_of(batch))
      bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

void pin(Batch& batch, const DeviceBackend& device) {
  for (at::Tensor* tensor : members(batch))
    if (tensor->defined()) *tensor = device.pinned(*tensor);
}

std::unique_ptr<InputPipeline> make_input_pipeline(
    InputPlace place, DeviceBackend& device, const std::vector<Batch>& batches,
    const std::vector<std::vector<Batch>>& micro_batches) {
  if (place == InputPlace::device) return std::make_unique<DeviceInput>(micro_batches);
  return std::make_unique<HostInput>(device, batches, micro_batches);
}

}  // namespace scalemark
