// See mllog.hpp.
#include "result/mllog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/clock.hpp"

namespace scalemark {
namespace {

Json setting(const Json& run, const char* key) {
  const Json& config = run.at("config");
  return config.contains(key) ? config.at(key).at("value") : Json();
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

void describe(Log& log, const Json& run, double at) {
  log.point(at, "submission_benchmark", run.at("model"));
  log.point(at, "submission_platform",
            fmt::format("{} x {}", run.at("world_size").dump(),
                        run.at("device_name").is_string() ? run["device_name"].get<std::string>()
                                                          : "unknown"));
  log.point(at, "global_batch_size", run.at("global_batch_size"));
  log.point(at, "seed", setting(run, "seed"));
  log.point(at, "opt_name", setting(run, "optimizer"));
  log.point(at, "opt_base_learning_rate", setting(run, "init_learning_rate"));
}

/// Steps in blocks, each with its rate, and the losses that the record kept.
void tell_steps(Log& log, const Json& run, double& at) {
  const Json& samples = run.at("step_seconds").at("samples");
  if (!samples.is_array() || !run.at("global_batch_size").is_number()) return;
  const double batch = run["global_batch_size"];
  const auto every = std::max<std::size_t>(1, setting(run, "display_every").get<std::size_t>());
  for (std::size_t begin = 0; begin < samples.size(); begin += every) {
    const std::size_t end = std::min(begin + every, samples.size());
    const Json done{{"step", begin}, {"samples_count", static_cast<double>(begin) * batch}};
    log.add(at, "INTERVAL_START", "block_start", nullptr, done);
    double seconds = 0;
    for (std::size_t step = begin; step < end; ++step) seconds += samples[step].get<double>();
    at += 1e3 * seconds;
    const double steps = static_cast<double>(end - begin);
    const Json now{{"step", end}, {"samples_count", static_cast<double>(end) * batch}};
    if (seconds > 0)
      log.point(at, "tracked_stats",
                {{"throughput", steps * batch / seconds}, {"step_seconds", seconds / steps}}, now);
    const Json& loss = run.at("loss");
    const std::size_t stride =
        loss.at("trace_stride").is_number() ? loss["trace_stride"].get<std::size_t>() : 1;
    const std::size_t last = (end - 1) / stride;
    if (loss.at("trace").is_array() && last < loss["trace"].size())
      log.point(at, "train_loss", loss["trace"][last], now);
    log.add(at, "INTERVAL_END", "block_stop", nullptr, now);
  }
}

}  // namespace

std::string mllog_text(const Json& run) {
  Log log;
  const Json& started = run.at("started_at").is_string() ? run["started_at"] : run.at("created_at");
  double at = utc_milliseconds(started.get<std::string>());
  log.add(at, "INTERVAL_START", "init_start", nullptr);
  describe(log, run, at);
  log.add(at, "INTERVAL_END", "init_stop", nullptr);
  log.add(at, "INTERVAL_START", "run_start", nullptr);
  tell_steps(log, run, at);
  const bool ok = run.at("status") == "ok";
  log.add(at, "INTERVAL_END", "run_stop", nullptr, {{"status", ok ? "success" : "aborted"}});
  return log.text();
}

}  // namespace scalemark
