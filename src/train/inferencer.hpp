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
#include "rendezvous/start_line.hpp"
#include "train/device_backend.hpp"
#include "train/step_loop.hpp"
#include "train/trace/step_trace.hpp"

namespace scalemark {

class Inferencer {
 public:
  /// Builds the model (same weights on all ranks), freezes it, and makes queries of `batch_size`
  /// samples that differ by rank. Ends with an untimed pass over them, in which oneDNN packs the
  /// weights; throws RunError where an output is not finite.
  Inferencer(const ResolvedConfig& config, DeviceBackend& device, RankGroup& group,
             std::int64_t batch_size);

  /// Warm-up, a barrier at which all ranks start the measured loop, each of which ends by itself,
  /// and another barrier.
  /// step_seconds are the latencies: of single_stream from the start of a query to its answer
  /// (waited for also on a GPU), of batches the time from one to the next. wall_seconds is this
  /// rank's own loop, without the turns of others. `line`: where it begins together with those of
  /// other processes, or takes turns with them; null: nowhere.
  Samples measure(RankGroup& group, const StepObserver& observer, StartLine* line = nullptr);

  /// `queries` more queries after measure(), recorded by `trace`.
  Samples trace(RankGroup& group, std::int64_t queries, StepTrace& trace);

  /// --mode server: passes of every batch size up to `batch_size`, then --num_warmup_batches of one
  /// query and as many of full batches, of which it returns the mean seconds.
  struct PassSeconds {
    double one = 0, full = 0;
  };
  PassSeconds warm_up_server(RankGroup& group);
  /// Serves queries that arrive at these seconds from now, on this rank by itself.
  Samples serve(RankGroup& group, std::span<const double> arrivals, const ServerPolicy& policy);

  /// A few forward passes of this batch: the mean seconds of one. Leaves no queries behind, also
  /// where it throws for lack of memory: a new inferencer comes after it.
  double try_batch(std::int64_t batch_size);

  /// What --kernels came to: "on"; "folded", where batch normalisation is folded but the device has
  /// no fused operators; "off".
  const std::string& fused() const { return fused_; }
  const std::optional<Quantization>& quantization() const { return quantization_; }
  /// Of one forward pass; with --mode server of one sample, which is a query.
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
  std::optional<Quantization> quantization_;  ///< of int8
  std::int64_t batch_size_;
  std::vector<Batch> queries_;  ///< with --mode server one batch, of which it takes parts
  double units_per_query_ = 0;
};

}  // namespace scalemark
