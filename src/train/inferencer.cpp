// The measured loop of inference: one query after the other.
#include "train/inferencer.hpp"

#include "config/names.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "models/frozen.hpp"
#include "train/precision.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

/// Different inputs that a single stream asks in turn, so that none is still in the caches.
constexpr std::int64_t kStreamQueries = 16;

std::int64_t count_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

std::string fused_as(const ResolvedConfig& config, const DeviceBackend& device) {
  if (config.fused == Fused::off) return "off";
  return device.device().is_cpu() && has_fused_operators(compute_dtype(config.precision))
             ? "on"
             : "folded";
}

}  // namespace

Inferencer::Inferencer(const ResolvedConfig& config, DeviceBackend& device, RankGroup& group,
                       std::int64_t batch_size)
    : config_(config),
      device_(device),
      rank_(group.rank()),
      model_(build_model(config_, group)),
      parameters_(count_parameters(*model_)),
      fused_(fused_as(config_, device)) {
  const at::ScalarType dtype = compute_dtype(config_.precision);
  device.set_precision(config_.precision);
  model_->to(device.device());
  counted_flops_ = own_forward_flops(config_, *model_);
  freeze(*model_, dtype, config_.fused == Fused::on);

  queries_ = make_queries(batch_size);
  const c10::InferenceMode inference;
  for (const Batch& query : queries_)
    if (!at::isfinite(model_->forward(query)).all().item<bool>())
      throw RunError(config_.model + ": an output of the network is not finite in " +
                     to_string(config_.precision));
}

std::vector<Batch> Inferencer::make_queries(std::int64_t batch_size) {
  const std::int64_t count = config_.mode == InferenceMode::single_stream ? kStreamQueries : 1;
  const auto seed = static_cast<std::uint64_t>(config_.seed) + 1 + rank_;
  return split(model_->synthetic_batch(count * batch_size, seed, device_.device(),
                                       compute_dtype(config_.precision)),
               batch_size);
}

Samples Inferencer::measure(RankGroup& group, const StepObserver& observer, StartLine* line) {
  const c10::InferenceMode inference;
  StepLoop loop(device_, group, InjectedFault(config_.inject, rank_), Stop::alone);
  const bool single_stream = config_.mode == InferenceMode::single_stream;
  std::vector<double> latencies;
  const auto ask = [&](long number) {
    const double start = steady_seconds();
    model_->forward(queries_[number % queries_.size()]);
    if (single_stream) {
      device_.synchronize();
      latencies.push_back(steady_seconds() - start);
    }
    return StepOutcome{};
  };
  Samples samples;
  samples.stop_reason = loop.run(config_.num_warmup_batches, "warm-up",
                                 StoppingRule(std::nullopt, std::nullopt), nullptr, ask)
                            .stop_reason;
  latencies.clear();
  group.barrier();
  if (samples.stop_reason == StopReason::num_batches) {
    wait_at(line, group);
    const double start = steady_seconds();
    samples = loop.run(config_.num_batches, "query",
                       StoppingRule(config_.target_ci, config_.max_seconds), observer, ask);
    samples.wall_seconds = steady_seconds() - start;
    if (line) line->report({start, start + samples.wall_seconds});
    if (single_stream) samples.step_seconds = std::move(latencies);
  }
  group.watchdog().enter("end of measured loop");
  group.barrier();
  return samples;
}

}  // namespace scalemark
