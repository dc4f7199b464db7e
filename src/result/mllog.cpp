// Writes a run as lines of MLPerf's logging.
#include "result/mllog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/clock.hpp"
#include "record/write.hpp"

namespace scalemark {
namespace {

Json setting(const RunResult& run, const char* key) {
  for (const auto& [name, setting] : run.config)
    if (name == key) return setting.value;
  return nullptr;
}

class Log {
 public:
  /// Null values have no line.
  void add(double milliseconds, const char* event, const char* key, const Json& value,
           Json metadata = Json::object()) {
    metadata["file"] = "scalemark";
    metadata["lineno"] = 0;
    const Json line{{"namespace", ""},     {"time_ms", std::llround(milliseconds)},
                    {"event_type", event}, {"key", key},
                    {"value", value},      {"metadata", metadata}};
    text_ += ":::MLLOG " + line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  }
  void point(double milliseconds, const char* key, const Json& value,
             Json metadata = Json::object()) {
    if (!value.is_null()) add(milliseconds, "POINT_IN_TIME", key, value, std::move(metadata));
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

void describe(Log& log, const RunResult& run, double at) {
  log.point(at, "submission_benchmark", run.model);
  log.point(at, "submission_platform",
            fmt::format("{} x {}", run.world_size, run.device_name.value_or("unknown")));
  log.point(at, "global_batch_size", or_null(run.global_batch_size));
  log.point(at, "seed", setting(run, "seed"));
  log.point(at, "opt_name", setting(run, "optimizer"));
  log.point(at, "opt_base_learning_rate", setting(run, "init_learning_rate"));
}

/// The latest loss that the record kept of the first `steps` steps.
void tell_loss(Log& log, const RunResult& run, double at, std::size_t steps, const Json& now) {
  if (!run.loss) return;
  const std::size_t last = (steps - 1) / static_cast<std::size_t>(run.loss->trace_stride);
  if (last < run.loss->trace.size() && std::isfinite(run.loss->trace[last]))
    log.point(at, "train_loss", run.loss->trace[last], now);
}

/// Steps in blocks, each with its rate, and the losses that the record kept.
void tell_steps(Log& log, const RunResult& run, double& at) {
  if (!run.step_seconds || !run.global_batch_size) return;
  const std::vector<double>& samples = run.step_seconds->samples;
  const auto batch = static_cast<double>(*run.global_batch_size);
  const auto every = std::max<std::size_t>(1, setting(run, "display_every").get<std::size_t>());
  for (std::size_t begin = 0; begin < samples.size(); begin += every) {
    const std::size_t end = std::min(begin + every, samples.size());
    const Json done{{"step", begin}, {"samples_count", static_cast<double>(begin) * batch}};
    log.add(at, "INTERVAL_START", "block_start", nullptr, done);
    double seconds = 0;
    for (std::size_t step = begin; step < end; ++step) seconds += samples[step];
    at += 1e3 * seconds;
    const double steps = static_cast<double>(end - begin);
    const Json now{{"step", end}, {"samples_count", static_cast<double>(end) * batch}};
    if (seconds > 0)
      log.point(at, "tracked_stats",
                {{"throughput", steps * batch / seconds}, {"step_seconds", seconds / steps}}, now);
    tell_loss(log, run, at, end, now);
    log.add(at, "INTERVAL_END", "block_stop", nullptr, now);
  }
}

}  // namespace

std::string mllog_text(const RunResult& run) {
  Log log;
  double at = utc_milliseconds(run.started_at.value_or(run.created_at));
  log.add(at, "INTERVAL_START", "init_start", nullptr);
  describe(log, run, at);
  log.add(at, "INTERVAL_END", "init_stop", nullptr);
  log.add(at, "INTERVAL_START", "run_start", nullptr);
  tell_steps(log, run, at);
  const bool ok = run.status == Status::ok;
  log.add(at, "INTERVAL_END", "run_stop", nullptr, {{"status", ok ? "success" : "aborted"}});
  return log.text();
}

}  // namespace scalemark
