// Describes a run on one line, estimates how long its steps take, and samples the load by others
// until it is low enough.
#include "session/announce.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "config/names.hpp"
#include "measure/clock.hpp"
#include "models/catalog.hpp"
#include "platform/binding.hpp"
#include "probe/gemm.hpp"
#include "report/console.hpp"
#include "result/foreign_load.hpp"
#include "result/run_record.hpp"
#include "streams.hpp"
#include "train/arithmetic.hpp"
#include "train/step_loop.hpp"

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

namespace {

constexpr std::chrono::seconds kLook{1};

/// Returns how much others use this host during one second in which the ranks sleep.
ForeignLoad look(const Session& session) {
  const NoiseSnapshot before = session.noise_now();
  std::this_thread::sleep_for(kLook);
  RankReport report;
  report.host = host_name();
  report.cpus_of_host = session.cpus_of_host();
  report.noise = noise_between(before, session.noise_now());
  const auto loads = foreign_loads({report});
  return loads.empty() ? ForeignLoad{} : loads.front();
}

}  // namespace

void wait_for_idle(Session& session, RankGroup& ranks) {
  const double limit = session.config().wait_for_idle;
  if (limit <= 0) return;
  const double begin = steady_seconds();
  for (bool told = false;; told = true) {
    ranks.watchdog().enter("wait for an idle machine");
    const ForeignLoad load = look(session);
    const bool late = steady_seconds() - begin >= limit;
    const auto sums =
        ranks.all_sum({load.notable() ? 1. : 0., late ? 1. : 0., stop_requested() ? 1. : 0.});
    if (sums[0] == 0 || sums[2] > 0) return;
    const std::string who = load.notable() ? load.words() : "other hosts are used by others";
    if (sums[1] > 0)
      return session.warn(fmt::format(
          "the machine did not become idle in {:g} s (--wait_for_idle): {}", limit, who));
    if (!told) session.say(fmt::format("waiting up to {:g} s for an idle machine: {}", limit, who));
  }
}

}  // namespace scalemark
