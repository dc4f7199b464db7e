// Holds a model that is trained and measured: its weights, batches and optimizer. What a step does
// is in train/measured_loop.hpp.
#pragma once

#include <memory>
#include <string>

#include "comm/gradient_reducer.hpp"
#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "models/model.hpp"
#include "rendezvous/start_barrier.hpp"
#include "train/device_backend.hpp"
#include "train/flat_parameters.hpp"
#include "train/optimizer.hpp"
#include "train/step_loop.hpp"
#include "train/step_reducer.hpp"
#include "train/trace/step_trace.hpp"

namespace scalemark {

/// The time of a data check, for --inject: a fault that begins at a step is not active before the
/// clock.
enum class CheckTime { before, after };

/// Trains one model on one device with any communicator: `scale` makes it once and measures many
/// points with it.
class Trainer {
 public:
  /// Builds the model (same weights on all ranks: seeded, and rank 0's where they differ), the flat
  /// parameters and this rank's batches. `group` agrees on the gradient-ready order.
  Trainer(const ResolvedConfig& config, DeviceBackend& device, RankGroup& group,
          const BatchPlan& batch);
  ~Trainer();

  /// Keeps a copy of the weights, so that every measurement can start from them. Without it only
  /// one measurement is possible.
  void keep_initial_weights();

  /// Runs the untimed data check through `communicator`. Throws CommError (see check_allreduce()
  /// and, where tables gather rows, check_allgather()). Afterwards all gradients are zero.
  void check_data(Communicator& communicator, int rank, CheckTime when = CheckTime::before);

  /// On a device that works behind the host, runs passes over every batch without an update, in
  /// which cuDNN and cuBLAS choose their kernels. measure() does this where it was not done with
  /// these batches yet; if it is done before, a meter around measure() does not include it. All
  /// ranks of `group` call it.
  void meet_shapes(RankGroup& group, Communicator& communicator);

  /// Runs warm-up, synchronised point, measured loop and synchronised point. All ranks of `group`
  /// call it together. It starts from the initial weights, and throws std::logic_error where they
  /// are gone. It stops early by the agreed stop (signal flag, --target_ci, --max_seconds,
  /// --target_loss, non-finite loss). `barrier` is where the loop begins together with those of
  /// other processes or is interleaved with them; null: nowhere.
  Samples measure(RankGroup& group, Communicator& communicator, const StepObserver& observer,
                  StartBarrier* barrier = nullptr);

  /// Returns the seconds of a step without communication while all ranks of `group` compute: the
  /// mean over ranks of one step after a first one.
  double calibrate(RankGroup& group);

  /// Runs `steps` more steps after a measurement, recorded by `trace`, which continue from the last
  /// measured ones; a few before them are not recorded. Writes no checkpoints. All ranks of `group`
  /// call it.
  Samples trace(RankGroup& group, Communicator& communicator, std::int64_t steps, StepTrace& trace);

  /// Runs a few steps with this batch size for each rank and without communication, on `alone`, a
  /// group of this rank. Returns the mean seconds of one, without making the batch. It changes the
  /// weights, and leaves no batch behind, also where it throws for lack of memory; call set_batch()
  /// or make a new trainer after it.
  double try_batch(RankGroup& alone, std::int64_t batch_size);

  /// Makes and checks the folder of --checkpoint_every, on those of `ranks` that
  /// --checkpoint_writers names, with --shard on all. Throws ResultError. The folder lives as long
  /// as the trainer.
  void open_checkpoints(const RankGroup& ranks);

  void set_batch(const BatchPlan& batch);  ///< strong scaling: per point
  void leave_out(LeaveOut what);           ///< of the following measurements
  std::int64_t parameter_count() const;
  /// Returns the counted FLOPs of the forward pass of one sample of a user's network for which none
  /// were given, else 0.
  double counted_flops() const;
  /// Returns the bytes of all gradient buckets, including those that c10d holds beside the flat
  /// ones.
  std::int64_t gradient_buffer_bytes() const;
  bool records_steps() const;         ///< whether a step is one recording (--cuda_graph)
  StepTraffic last_traffic() const;   ///< traffic of a step of the last measurement
  std::int64_t weight_bytes() const;  ///< fp32 masters, and shadows where there are any
  std::int64_t optimizer_state_bytes() const;
  std::int64_t batch_bytes() const;       ///< size of all prepared batches
  double units_per_step_of_rank() const;  ///< mean over its batches
  FlatParameters& parameters();  ///< its tables() say how the gradients of embeddings travel

  struct Impl;  ///< shared by the files of train/

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace scalemark
