// Forward passes of one model on one device, without autograd: eval mode, weights in the compute
// dtype, layers folded and fused as --kernels says. Every rank is a replica of its own; nothing is
// sent between ranks while they are measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/rank_group.hpp"
#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "measure/server.hpp"
#include "models/frozen.hpp"
#include "rendezvous/start_barrier.hpp"
#include "train/device_backend.hpp"
#include "train/step_loop.hpp"
#include "train/trace/step_trace.hpp"

namespace scalemark {

/// Measures the inference of one model on one device.
class Inferencer {
 public:
  /// Builds the model (same weights on all ranks), freezes it, and makes queries of `batch_size`
  /// samples that differ by rank. It ends with an untimed pass over them, in which oneDNN packs the
  /// weights. Throws RunError where an output is not finite.
  Inferencer(const ResolvedConfig& config, DeviceBackend& device, RankGroup& group,
             std::int64_t batch_size);

  /// Runs the warm-up, a barrier, the measured loop and another barrier. Each rank's loop ends by
  /// itself. step_seconds are the latencies: with single_stream from the start of a query to its
  /// answer (which is waited for on a GPU, too), with batches the time from one to the next.
  /// wall_seconds is that of this rank's loop, without the time of interleaved measurements.
  /// `barrier` is where the loop begins together with those of other processes or is interleaved
  /// with them; null: nowhere.
  Samples measure(RankGroup& group, const StepObserver& observer, StartBarrier* barrier = nullptr);

  /// Runs `queries` more queries after measure(), recorded by `trace`.
  Samples trace(RankGroup& group, std::int64_t queries, StepTrace& trace);

  /// With --mode server, runs passes of every batch size up to `batch_size`, then
  /// --num_warmup_batches passes of one query and as many of full batches. Returns the mean seconds
  /// of both.
  struct PassSeconds {
    double one = 0, full = 0;
  };
  PassSeconds warm_up_server(RankGroup& group);
  /// Serves, on this rank independently, queries that arrive at these seconds from now.
  Samples serve(RankGroup& group, std::span<const double> arrivals, const ServerPolicy& policy);

  /// Runs a few forward passes of this batch and returns the mean seconds of one. It leaves no
  /// queries behind, also where it throws for lack of memory; make a new inferencer after it.
  double try_batch(std::int64_t batch_size);

  /// What --kernels came to: "on"; "folded", where batch normalisation is folded but the device has
  /// no fused operators; "off".
  const std::string& fused() const { return fused_; }
  const std::optional<Quantization>& quantization() const { return quantization_; }
  /// Returns the units of one forward pass; with --mode server those of one sample, which is a
  /// query.
  double units_per_query() const { return units_per_query_; }
  std::int64_t parameter_count() const { return parameters_; }
  double counted_flops() const { return counted_flops_; }  ///< see Trainer

 private:
  std::vector<Batch> make_queries(std::int64_t batch_size);
  void answer(std::int64_t first, std::int64_t count);

  ResolvedConfig config_;
  DeviceBackend& device_;
  int rank_;
  std::shared_ptr<Model> model_;
  std::int64_t parameters_;
  double counted_flops_ = 0;
  std::string fused_;
  std::optional<Quantization> quantization_;  ///< set with int8
  std::int64_t batch_size_;
  std::vector<Batch> queries_;  ///< with --mode server a single batch, of which parts are used
  double units_per_query_ = 0;
};

}  // namespace scalemark
