// Collects the content of a checkpoint, and decides when one is written.
#include <unordered_map>

#include "measure/clock.hpp"
#include "train/measured_loop.hpp"

namespace scalemark {
namespace {

/// Returns the slice of every parameter, by its number.
std::unordered_map<int, Slice> slices_by_parameter(const FlatParameters& parameters) {
  std::unordered_map<int, Slice> slices;
  for (const Slice& slice : parameters.slices()) slices[slice.parameter] = slice;
  return slices;
}

}  // namespace

void write_training_state(torch::serialize::OutputArchive& archive, const Model& model,
                          FlatParameters& parameters, const TrainingState& state) {
  const at::NoGradGuard no_grad;
  // Leaves and states are views of buckets. The serialiser writes a bucket once, whatever its
  // views.
  model.save(archive);
  torch::serialize::OutputArchive optimizer(archive.compilation_unit());
  const auto slices = slices_by_parameter(parameters);
  const std::vector<at::Tensor> leaves = model.parameters();
  const std::vector<Bucket>& buckets = parameters.buckets();
  for (std::size_t i = 0; i < buckets.front().state.size(); ++i) {
    c10::List<at::Tensor> tensors;
    for (int parameter = 0; parameter < static_cast<int>(leaves.size()); ++parameter) {
      const Slice& slice = slices.at(parameter);
      tensors.push_back(view_of(buckets[static_cast<std::size_t>(slice.bucket)].state[i], slice,
                                leaves[static_cast<std::size_t>(parameter)]));
    }
    optimizer.write("state" + std::to_string(i), c10::IValue(tensors));
  }
  archive.write("optimizer", optimizer);
  torch::serialize::OutputArchive training(archive.compilation_unit());
  training.write("steps", c10::IValue(state.steps));
  training.write("optimizer_steps", c10::IValue(state.optimizer_steps));
  training.write("learning_rate", c10::IValue(state.learning_rate));
  training.write("loss_scale", c10::IValue(state.loss_scale));
  archive.write("training_state", training);
}

std::int64_t checkpoint_tensor_bytes(const Model& model, FlatParameters& parameters) {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : parameters.buckets()) {
    bytes += static_cast<std::int64_t>(bucket.weights.nbytes());
    for (const at::Tensor& state : bucket.state) bytes += static_cast<std::int64_t>(state.nbytes());
  }
  for (const at::Tensor& buffer : model.buffers())
    bytes += static_cast<std::int64_t>(buffer.nbytes());
  return bytes;
}

std::function<void(long)> checkpoint_writer(Trainer::Impl& trainer, RankGroup& group,
                                            CheckpointSamples& samples, MeasuredLoop& loop) {
  if (trainer.config.checkpoint_every == 0) return [](long) {};
  const std::int64_t every = trainer.config.checkpoint_every;
  if (trainer.checkpoints) samples.every = every;
  const auto write = [&trainer, &samples, &loop](long number) {
    if (!trainer.checkpoints) return;
    trainer.device.synchronize();  // excludes the step's own work from the time of the checkpoint
    const double begin = steady_seconds();
    const UpdateRule& rule = *trainer.optimizer;
    torch::serialize::OutputArchive archive;
    write_training_state(archive, *trainer.model, *trainer.parameters,
                         {number + 1, rule.steps(), rule.learning_rate(), loop.loss_scale()});
    samples.bytes = trainer.checkpoints->write(archive, number + 1);
    samples.write_seconds.push_back(steady_seconds() - begin);
  };
  return [&trainer, &group, &loop, every, write](long number) {
    const long measured = number + 1 - static_cast<long>(trainer.config.num_warmup_batches);
    if (measured % every != 0) return;
    group.watchdog().enter("checkpoint", number);
    loop.complete_updates(StepPhase::checkpoint);
    // The next step waits for the slowest rank anyway; a disk that is full ends all ranks alike.
    try {
      group.agree_on([&] { write(number); });
    } catch (const AgreedError& error) {
      throw AgreedWhileMeasuring(error.code(), error.what());
    }
  };
}

}  // namespace scalemark
