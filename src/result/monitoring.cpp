// Writes the state of a run as OpenMetrics text, and a run as lines of MLPerf's logging.
#include "result/monitoring.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "error.hpp"
#include "measure/clock.hpp"
#include "platform/posix_file.hpp"
#include "record/write.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      text += std::string("\\") + c;
    else
      text += c;
  }
  return text;
}

class Metrics {
 public:
  explicit Metrics(const LiveState& state) {
    for (const auto& [name, value] : state.labels)
      labels_ += fmt::format("{}{}=\"{}\"", labels_.empty() ? "" : ",", name, escaped(value));
  }

  /// `unit`: what the name ends with, where that is a unit; of a counter the sample ends with
  /// _total.
  void add(const std::string& name, const char* type, const char* help, std::optional<double> value,
           const char* unit = "") {
    if (!value || !std::isfinite(*value)) return;
    text_ += fmt::format("# TYPE scalemark_{} {}\n", name, type);
    if (*unit != '\0') text_ += fmt::format("# UNIT scalemark_{} {}\n", name, unit);
    text_ += fmt::format("# HELP scalemark_{} {}\n", name, help);
    const bool counter = std::strcmp(type, "counter") == 0;
    text_ +=
        fmt::format("scalemark_{}{}{{{}}} {}\n", name, counter ? "_total" : "", labels_, *value);
  }

  std::string text() const { return text_ + "# EOF\n"; }

 private:
  std::string labels_, text_;
};

[[noreturn]] void refuse(const std::filesystem::path& path, const char* what) {
  throw ResultError(
      fmt::format("--openmetrics {}: {}: {}", path.string(), what, write_error_words(errno)));
}

}  // namespace

std::string openmetrics_text(const LiveState& state) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Metrics metrics(state);
  metrics.add("running", "gauge", "1 while steps are measured, else 0.", state.running ? 1 : 0);
  metrics.add("updated_timestamp_seconds", "gauge", "When this was written; old: the run is gone.",
              now.count(), "seconds");
  metrics.add("steps", "counter", "Measured steps so far.", static_cast<double>(state.steps));
  metrics.add("planned_steps", "gauge", "Measured steps that were asked for.",
              static_cast<double>(state.planned_steps));
  metrics.add("elapsed_seconds", "gauge", "Time of the measured steps.", state.elapsed_seconds,
              "seconds");
  metrics.add("throughput", "gauge", "Units per second of all ranks, of the latest steps.",
              state.throughput);
  metrics.add("mean_throughput", "gauge", "Units per second of all ranks, of all measured steps.",
              state.mean_throughput);
  metrics.add("step_seconds", "gauge", "Median of the latest steps.", state.step_seconds,
              "seconds");
  metrics.add("loss", "gauge", "Mean loss of the latest step.", state.loss);
  return metrics.text();
}

void replace_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path temporary = path;
  temporary.replace_filename("." + path.filename().string() + ".tmp");
  {
    const FileDescriptor file{open_own(temporary, O_WRONLY | O_TRUNC)};
    if (file.fd < 0) refuse(path, "cannot create a file beside it");
    if (const int error = write_whole(file.fd, text); error != 0) {
      unlink(temporary.c_str());
      errno = error;
      refuse(path, "cannot be written");
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    errno = error;
    refuse(path, "cannot be put in place");
  }
}

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
