// Internal to train/: what a Trainer holds between its measurements.
#pragma once

#include "train/checkpoint.hpp"
#include "train/trainer.hpp"

namespace scalemark {

class MeasuredLoop;

struct Trainer::Impl {
  ResolvedConfig config;
  DeviceBackend& device;
  int rank;  ///< in the group that made the trainer: decides the batch and injected faults
  std::shared_ptr<Model> model;
  std::shared_ptr<FlatParameters> parameters;
  std::unique_ptr<UpdateRule> optimizer;
  BatchPlan plan;
  std::vector<Batch> batches;  ///< taken in turn, one a step; they lie where --input says
  std::vector<std::vector<Batch>> micro_batches;  ///< parts of each of `batches`
  std::vector<at::Tensor> initial_weights;        ///< by bucket; empty where they were not kept
  double counted_flops = 0;                       ///< see Trainer::counted_flops()
  bool shapes_met = false;                        ///< of `plan`, see Trainer::meet_shapes()
  bool untouched = true;                          ///< no step has changed the weights yet
  StepTraffic traffic = {};                       ///< of the last measurement
  std::unique_ptr<CheckpointFolder> checkpoints = nullptr;  ///< of a writer, once open

  std::vector<Batch> prepare_batches() const;  ///< of `plan`
  bool must_meet_shapes() const { return device.works_behind_host() && !shapes_met; }
  /// The weights as they were made, no momentum, dropout from its seed: every measurement trains
  /// the same way.
  void restart();
};

/// --bucket_mb, or the device's default.
inline double bucket_mb(const ResolvedConfig& config, const DeviceBackend& device) {
  return config.bucket_mb.value_or(default_bucket_mb(device.device().is_cuda()));
}

/// The reducer of `--reducer` for one measurement; scalemark's own with communicator `none`.
std::unique_ptr<StepReducer> make_step_reducer(Trainer::Impl& trainer, RankGroup& group,
                                               Communicator& communicator);

/// The network of a configuration on the CPU: seeded, and rank 0's weights where they
/// differ.
std::shared_ptr<Model> build_model(const ResolvedConfig& config, RankGroup& group);

/// Trainer::counted_flops() of a network that was just built, on its device. Changes nothing of it.
double own_forward_flops(const ResolvedConfig& config, Model& model);

/// For MeasuredLoop::set_after_step(), of all ranks: writes every --checkpoint_every-th measured
/// step where the trainer's checkpoints are open, and adds to `samples`, which outlives it. Throws
/// AgreedWhileMeasuring.
std::function<void(long number)> checkpoint_writer(Trainer::Impl& trainer, RankGroup& group,
                                                   CheckpointSamples& samples, MeasuredLoop& loop);

/// The data check on CUDA buffers too, staged through the host.
void check_gradient_buffers(Communicator& communicator, FlatParameters& parameters,
                            DeviceBackend& device, int rank, bool corrupt);

}  // namespace scalemark
