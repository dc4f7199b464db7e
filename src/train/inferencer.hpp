// Forward passes of one model on one device, without autograd: eval mode, weights in the compute
// dtype, layers folded and fused as --fused says. Every rank is a replica of its own; nothing is
// sent between ranks while they are measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/rank_group.hpp"
#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "models/model.hpp"
#include "rendezvous/start_line.hpp"
#include "train/device_backend.hpp"
#include "train/step_loop.hpp"

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
  /// rank's own loop. `line`: where it begins together with those of other processes; queries take
  /// no turns. null: nowhere.
  Samples measure(RankGroup& group, const StepObserver& observer, StartLine* line = nullptr);

  /// A few forward passes of this batch: the mean seconds of one. Leaves no queries behind, also
  /// where it throws for lack of memory: a new inferencer comes after it.
  double try_batch(std::int64_t batch_size);

  /// What --fused came to: "on"; "folded", where batch normalisation is folded but the device has
  /// no fused operators; "off".
  const std::string& fused() const { return fused_; }
  double units_per_query() const { return queries_.front().units; }
  std::int64_t parameter_count() const { return parameters_; }
  double counted_flops() const { return counted_flops_; }  ///< see Trainer

 private:
  std::vector<Batch> make_queries(std::int64_t batch_size);

  ResolvedConfig config_;
  DeviceBackend& device_;
  int rank_;
  std::shared_ptr<Model> model_;
  std::int64_t parameters_;
  double counted_flops_ = 0;
  std::string fused_;
  std::vector<Batch> queries_;
};

}  // namespace scalemark
