// Describes a run on one line, and estimates how long its steps take.
#include "session/announce.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "platform/binding.hpp"
#include "probe/gemm.hpp"
#include "report/console.hpp"
#include "streams.hpp"
#include "train/arithmetic.hpp"

namespace scalemark {
namespace {

constexpr double kLongSeconds = 600;
/// This fraction of the rate of matrix products is expected; resnet50 and bert_large reach 0.35 to
/// 0.6 of it.
constexpr double kUsualFraction = 0.5;

std::string device_words(const Session& session) {
  const bool cuda = session.device->device().is_cuda();
  const Json model =
      cuda ? Json(session.device->name()) : Json(session.system.json.at("cpu_model"));
  return fmt::format("{} ({})", cuda ? "cuda" : "cpu",
                     model.is_string() ? model.get<std::string>() : "of unknown model");
}

}  // namespace

void announce_run(const Session& session, const ResolvedConfig& config, const BatchPlan& batch,
                  const std::vector<int>& ranks) {
  const int threads = at::get_num_threads();
  if (session.is_root() && uses_event_lines())
    write_event("start", {{"command", name_of(session.loaded.command)},
                          {"model", config.model},
                          {"precision", to_string(config.precision)},
                          {"batch_size_per_rank", batch.batch_size_per_rank},
                          {"global_batch_size", batch.global_batch_size},
                          {"ranks", ranks},
                          {"threads", threads},
                          {"device", device_words(session)}});
  const bool strong = config.scaling == Scaling::strong;
  const auto nodes = ranks_of_nodes(session.hosts);
  const std::string placed = nodes.size() > 1 ? "; " + placement_words(nodes) : "";
  session.say(fmt::format("{} {}, {} {}, {} rank{} x {} thread{}, {}{}", config.model,
                          to_string(config.precision), strong ? "global batch" : "batch",
                          strong ? batch.global_batch_size : batch.batch_size_per_rank,
                          fmt::join(ranks, ", "), ranks == std::vector{1} ? "" : "s", threads,
                          threads == 1 ? "" : "s", device_words(session), placed));
}

double expected_seconds(const ResolvedConfig& config, double step) {
  return step * static_cast<double>(config.num_warmup_batches) +
         std::min(step * static_cast<double>(config.num_batches),
                  config.max_seconds.value_or(std::numeric_limits<double>::infinity()));
}

void announce_time(const Session& session, RankGroup& ranks, const ResolvedConfig& config,
                   double flops_per_step, std::optional<double> gemm_flops) {
  if (!gemm_flops || *gemm_flops <= 0 || flops_per_step <= 0) return;
  // The steps of such a device are short. A single small convolution that the host waits for would
  // only measure its launch.
  if (session.device->works_behind_host()) return;
  double rate = kUsualFraction * *gemm_flops;
  if (find_model(config.model)->image_size > 0 && config.precision != Precision::fp32)
    rate =
        std::min(rate, ranks.all_sum({measure_convolution_flops(
                           *session.device, compute_dtype(config.precision),
                           session.loaded.command != Command::infer && !config.forward_only)})[0]);
  const double step = flops_per_step / rate;
  const double seconds = expected_seconds(config, step);
  if (session.device->native(config.precision) && seconds < kLongSeconds) return;
  session.say(
      fmt::format("this will take about {}, {:.2g} s a step in {}; fewer --num_batches and "
                  "--num_warmup_batches, a smaller --batch_size or another --precision take less",
                  format_duration(seconds), step, to_string(config.precision)));
}

}  // namespace scalemark
