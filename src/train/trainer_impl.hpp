// Holds the state of a Trainer between its measurements. Internal to train/.
#pragma once

#include "train/checkpoint.hpp"
#include "train/trainer.hpp"

namespace scalemark {

class MeasuredLoop;

struct Trainer::Impl {
  ResolvedConfig config;
  DeviceBackend& device;
  int rank;  ///< rank in the group that made the trainer: decides the batch and injected faults
  std::shared_ptr<Model> model;
  std::shared_ptr<FlatParameters> parameters;
  std::unique_ptr<UpdateRule> optimizer;
  BatchPlan plan;
  std::vector<Batch> batches;  ///< taken in turn, one a step; they lie where --input says
  std::vector<std::vector<Batch>> micro_batches;  ///< parts of each of `batches`
  std::vector<at::Tensor> initial_weights;        ///< by bucket; empty where they were not kept
  double counted_flops = 0;                       ///< see Trainer::counted_flops()
  bool shapes_met = false;     ///< the shapes of `plan` were met, see Trainer::meet_shapes()
  bool records_steps = false;  ///< see MeasuredLoop::record_steps()
  bool untouched = true;       ///< no step has changed the weights yet
  StepTraffic traffic = {};    ///< traffic of the last measurement
  std::unique_ptr<CheckpointFolder> checkpoints = nullptr;  ///< of a rank that writes checkpoints

  std::vector<Batch> prepare_batches() const;  ///< makes the batches of `plan`
  bool must_meet_shapes() const { return device.works_behind_host() && !shapes_met; }
  /// Restores the initial weights, clears the momentum and reseeds dropout, so that every
  /// measurement trains the same way.
  void restart();
};

/// Returns --bucket_mb, or the default of the device.
inline double bucket_mb(const ResolvedConfig& config, const DeviceBackend& device) {
  return config.bucket_mb.value_or(default_bucket_mb(device.device().is_cuda()));
}

/// Makes the reducer of `--reducer` for one measurement. With communicator `none` it is scalemark's
/// own.
std::unique_ptr<StepReducer> make_step_reducer(Trainer::Impl& trainer, RankGroup& group,
                                               Communicator& communicator);

/// Makes that of --shard. A communicator that moves no data leaves every rank with its own block of
/// gradients and weights.
std::unique_ptr<StepReducer> make_sharded_reducer(Trainer::Impl& trainer,
                                                  Communicator& communicator);

/// Builds the network of a configuration on the CPU: seeded, and with rank 0's weights where they
/// differ.
std::shared_ptr<Model> build_model(const ResolvedConfig& config, RankGroup& group);

/// Returns Trainer::counted_flops() of a network that was just built, on its device. The network is
/// unchanged afterwards.
double own_forward_flops(const ResolvedConfig& config, Model& model);

/// Returns a function for MeasuredLoop::set_after_step() of all ranks: it writes every
/// --checkpoint_every-th measured step where the trainer's checkpoints are open, and adds to
/// `samples`, which must outlive it. The function throws AgreedWhileMeasuring.
std::function<void(long number)> checkpoint_writer(Trainer::Impl& trainer, RankGroup& group,
                                                   CheckpointSamples& samples, MeasuredLoop& loop);

/// Runs the data check, staged through the host for CUDA buffers.
void check_gradient_buffers(Communicator& communicator, FlatParameters& parameters,
                            DeviceBackend& device, int rank, bool corrupt);

}  // namespace scalemark
