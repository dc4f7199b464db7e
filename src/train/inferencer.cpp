// Implements the measured loop of inference, one query after the other.
#include "train/inferencer.hpp"

#include "config/names.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "train/arithmetic.hpp"
#include "train/step_loop.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

/// A single stream uses this many different inputs in turn, so that none of them is still in the
/// caches.
constexpr std::int64_t kStreamQueries = 16;

std::int64_t count_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

std::string fused_as(const ResolvedConfig& config, const DeviceBackend& device) {
  if (config.kernels == Kernels::torch) return "off";
  const bool cpu = device.device().is_cpu();
  const bool fused = cpu ? has_fused_operators(compute_dtype(config.precision))
                         : at::globalContext().userEnabledCuDNN();
  return fused ? "on" : "folded";
}

}  // namespace

Inferencer::Inferencer(const ResolvedConfig& config, DeviceBackend& device, RankGroup& group,
                       std::int64_t batch_size)
    : config_(config),
      device_(device),
      rank_(group.rank()),
      model_(build_model(config_, group)),
      parameters_(count_parameters(*model_)),
      fused_(fused_as(config_, device)),
      batch_size_(batch_size) {
  const at::ScalarType dtype = compute_dtype(config_.precision);
  device.set_precision(config_.precision);
  model_->to(device.device());
  counted_flops_ = own_forward_flops(config_, *model_);
  const bool int8 = config_.precision == Precision::int8;
  freeze(*model_, int8 ? at::kQInt8 : dtype, config_.kernels == Kernels::scalemark);

  queries_ = make_queries(batch_size);
  const bool server = config_.mode == InferenceMode::server;
  units_per_query_ = part_of(queries_.front(), 0, server ? 1 : batch_size).units;
  const c10::InferenceMode inference;
  if (int8) quantization_ = quantize(*model_, part_of(queries_.front(), 0, batch_size));
  if (quantization_ && quantization_->layers == 0)
    throw ConfigError(config_.model +
                      ": --precision int8: it has no layer of this program's that could be "
                      "quantised; use fp32 or bf16");
  for (const Batch& query :
       server ? std::vector{part_of(queries_.front(), 0, batch_size)} : queries_)
    if (!at::isfinite(model_->forward(query)).all().item<bool>())
      throw RunError(config_.model + ": an output of the network is not finite in " +
                     to_string(config_.precision));
}

std::vector<Batch> Inferencer::make_queries(std::int64_t batch_size) {
  const std::int64_t count = config_.mode == InferenceMode::single_stream ? kStreamQueries : 1;
  const auto seed = static_cast<std::uint64_t>(config_.seed) + 1 + rank_;
  if (config_.mode == InferenceMode::server)  // a batch may begin with any of them
    return {model_->synthetic_batch(batch_size + kStreamQueries - 1, seed, device_.device(),
                                    compute_dtype(config_.precision))};
  return split(model_->synthetic_batch(count * batch_size, seed, device_.device(),
                                       compute_dtype(config_.precision)),
               batch_size);
}

Samples Inferencer::measure(RankGroup& group, const StepObserver& observer, StartBarrier* barrier) {
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
    wait_at(barrier, group);
    const double start = steady_seconds();
    samples =
        loop.run(config_.num_batches, "query", StoppingRule(config_.target_ci, config_.max_seconds),
                 observer, ask, barrier);
    const double end = steady_seconds();
    samples.wall_seconds = end - start - samples.paused_seconds;
    if (barrier) barrier->report({start, end});
    leave(barrier, group);
    if (single_stream) samples.step_seconds = std::move(latencies);
  }
  group.watchdog().enter("end of measured loop");
  group.barrier();
  return samples;
}

Samples Inferencer::trace(RankGroup& group, std::int64_t queries, StepTrace& trace) {
  const c10::InferenceMode inference;
  StepLoop loop(device_, group, InjectedFault(config_.inject, rank_), Stop::alone);
  const StoppingRule never(std::nullopt, std::nullopt);
  const auto ask = [&](long number) {
    loop.enter(StepPhase::forward);
    model_->forward(queries_[number % queries_.size()]);
    if (config_.mode == InferenceMode::single_stream) device_.synchronize();
    loop.enter(StepPhase::rest);
    return StepOutcome{};
  };
  loop.run(kUnrecordedSteps, "before the trace", never, nullptr, ask);
  trace.begin(group);
  loop.watch(static_cast<long>(config_.num_warmup_batches + config_.num_batches), trace);
  Samples samples = loop.run(queries, "traced query", never, nullptr, ask);
  trace.end(group);
  return samples;
}

/// Runs the forward pass of `count` queries from number `first` on and waits for it.
void Inferencer::answer(std::int64_t first, std::int64_t count) {
  InjectedFault(config_.inject, rank_).before_step(static_cast<long>(first), device_.device());
  model_->forward(part_of(queries_.front(), first % kStreamQueries, count));
  device_.synchronize();
}

Inferencer::PassSeconds Inferencer::warm_up_server(RankGroup& group) {
  const c10::InferenceMode inference;
  const std::int64_t passes = std::max<std::int64_t>(1, config_.num_warmup_batches);
  const auto mean_seconds = [&](std::int64_t count) {
    const double start = steady_seconds();
    for (std::int64_t i = 0; i < passes && !stop_requested(); ++i) {
      group.watchdog().enter("warm-up", i);
      answer(i, count);
    }
    return (steady_seconds() - start) / static_cast<double>(passes);
  };
  for (std::int64_t count = 1; count <= batch_size_; ++count) {
    group.watchdog().enter("warm-up", count);
    answer(0, count);
  }
  return {mean_seconds(1), mean_seconds(batch_size_)};
}

Samples Inferencer::serve(RankGroup& group, std::span<const double> arrivals,
                          const ServerPolicy& policy) {
  const c10::InferenceMode inference;
  SteadyServerClock clock(steady_seconds());
  return scalemark::serve(
      arrivals, policy, clock,
      [&](std::size_t first, std::size_t count) {
        answer(static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
      },
      [&](std::size_t first) {
        group.watchdog().enter("query", static_cast<long>(first));
        return !stop_requested();
      });
}

}  // namespace scalemark
