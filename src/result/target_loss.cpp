// How long the training of a run took to come down to --target_loss.
#include "measure/target_loss.hpp"

#include <algorithm>
#include <numeric>

#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// From the first warm-up step to the end of the last of `steps` measured ones, slowest rank.
double training_seconds(const std::vector<RankReport>& reports, std::size_t steps) {
  double slowest = 0;
  for (const RankReport& report : reports) {
    const auto& times = report.samples.step_seconds;
    const auto end = times.begin() + static_cast<std::ptrdiff_t>(std::min(steps, times.size()));
    slowest =
        std::max(slowest, std::accumulate(times.begin(), end, report.samples.warm_up_seconds));
  }
  return slowest;
}

}  // namespace

void fill_target(Json& record, const LoadedConfig& config, const std::vector<RankReport>& reports) {
  if (!record["loss"].is_object()) return;
  if (!config.config.target_loss)
    return set_unavailable(record, "loss.target", "no --target_loss was asked for");
  const double target = *config.config.target_loss;
  const auto measured = steps_to_loss(reports.front().samples.loss, target);
  record["loss"]["target"] = {{"loss", target}, {"reached", measured.has_value()}};
  const std::string never = "the loss did not come down to the target";
  if (measured)
    record["loss"]["target"]["steps"] =
        config.config.num_warmup_batches + static_cast<std::int64_t>(*measured);
  else
    set_unavailable(record, "loss.target.steps", never);
  set_number(record, "loss.target.seconds",
             measured ? std::optional(training_seconds(reports, *measured)) : std::nullopt, never);
}

}  // namespace scalemark
