// Internal to train/: what a Trainer holds between its measurements.
#pragma once

#include "train/trainer.hpp"

namespace scalemark {

struct Trainer::Impl {
  RunConfig config;
  DeviceBackend& device;
  int rank;  ///< in the group that made the trainer: decides the batch and injected faults
  std::shared_ptr<Model> model;
  std::shared_ptr<FlatParameters> parameters;
  std::unique_ptr<UpdateRule> optimizer;
  BatchPlan plan;
  std::vector<Batch> batches;  ///< taken in turn, one a step; equal units and loss counts
  std::vector<std::vector<Batch>> micro_batches;  ///< parts of each of `batches`
  std::vector<at::Tensor> initial_weights;        ///< by bucket; empty where they were not kept
  bool untouched = true;                          ///< no step has changed the weights yet
  StepTraffic traffic = {};                       ///< of the last measurement

  std::vector<Batch> prepare_batches() const;  ///< of `plan`
  /// The weights as they were made, no momentum, dropout from its seed: every measurement trains
  /// the same way.
  void restart();
};

/// The reducer of `--reducer` for one measurement; scalemark's own with communicator `none`.
std::unique_ptr<StepReducer> make_step_reducer(Trainer::Impl& trainer, RankGroup& group,
                                               Communicator& communicator);

/// The network of a resolved configuration on the CPU: seeded, and rank 0's weights where they
/// differ.
std::shared_ptr<Model> build_model(const RunConfig& config, RankGroup& group);

/// The data check on CUDA buffers too, staged through the host.
void check_gradient_buffers(Communicator& communicator, FlatParameters& parameters,
                            DeviceBackend& device, int rank, bool corrupt);

}  // namespace scalemark
