// Writes the state of a run as OpenMetrics text.
#include "result/openmetrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "error.hpp"
#include "platform/posix_file.hpp"
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

}  // namespace scalemark
