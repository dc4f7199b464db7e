// Tells programs of a running measurement, at most once per second.
#include "session/live_report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "config/names.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr double kPeriod = 1;       // seconds
constexpr double kLastSeconds = 5;  // for the file, after the run

}  // namespace

LiveState idle_state(const Session& session, int ranks) {
  const ResolvedConfig& config = session.config();
  LiveState state;
  state.labels = {{"command", std::string(name_of(session.loaded.command))},
                  {"model", config.model},
                  {"precision", to_string(config.precision)},
                  {"ranks", std::to_string(ranks)},
                  {"unit", unit_of(config)}};
  if (config.label) state.labels.emplace_back("label", *config.label);
  state.planned_steps = config.num_batches;
  return state;
}

LiveReport::LiveReport(Session& session, int ranks, double units_per_step)
    : session_(session),
      units_per_step_(units_per_step),
      state_(idle_state(session, ranks)),
      file_writer_(1) {}

LiveReport::~LiveReport() {
  state_.running = false;
  file_writer_.finish(kLastSeconds);
  write_file();
  if (file_failed_) session_.warn_once(file_error_);
}

void LiveReport::step(long step, double loss, const std::vector<double>& step_seconds) {
  const double now = steady_seconds();
  if (now - last_ < kPeriod || step_seconds.size() <= told_steps_) return;
  last_ = now;
  report(step, loss, step_seconds);
}

void LiveReport::end(const record::Measured& run, std::int64_t steps) {
  state_.mean_throughput = run.throughput->mean;
  state_.elapsed_seconds = *run.wall_seconds;
  state_.steps = steps;
}

void LiveReport::report(long step, double loss, const std::vector<double>& step_seconds) {
  const std::span<const double> news = std::span(step_seconds).subspan(told_steps_);
  const double seconds = std::accumulate(news.begin(), news.end(), 0.);
  told_steps_ = step_seconds.size();
  state_.running = true;
  state_.steps = step;
  state_.elapsed_seconds += seconds;
  state_.throughput = units_per_step_ * static_cast<double>(news.size()) / seconds;
  state_.mean_throughput =
      units_per_step_ * static_cast<double>(told_steps_) / state_.elapsed_seconds;
  state_.step_seconds = median(news);
  state_.loss = std::isfinite(loss) ? std::optional(loss) : std::nullopt;
  write_file();
  if (!uses_event_lines()) return;
  Json event = Json::object();
  for (const auto& [name, value] : state_.labels) event[name] = value;
  event["ranks"] = std::stoi(event["ranks"].get<std::string>());
  event.update({{"step", state_.steps},
                {"of", state_.planned_steps},
                {"throughput", *state_.throughput},
                {"mean_throughput", *state_.mean_throughput},
                {"step_seconds", *state_.step_seconds},
                {"loss", or_null<Json>(state_.loss)},
                {"elapsed_seconds", state_.elapsed_seconds},
                {"left_seconds", seconds_left()}});
  write_event("step", event);
}

double LiveReport::seconds_left() const {
  const double step = state_.elapsed_seconds / static_cast<double>(told_steps_);
  const double most =
      session_.config().max_seconds.value_or(std::numeric_limits<double>::infinity());
  return std::max(0., std::min(step * static_cast<double>(state_.planned_steps - state_.steps),
                               most - state_.elapsed_seconds));
}

/// Has the state written to the file of --openmetrics, but not while the last one is still being
/// written. A file that fails later than at the start costs only a warning, not the measurement.
void LiveReport::write_file() {
  const auto& path = session_.config().openmetrics;
  if (!path) return;
  if (file_failed_) session_.warn_once(file_error_);
  file_writer_.add([this, path = *path, text = openmetrics_text(state_)] {
    try {
      replace_text(path, text);
    } catch (const std::exception& error) {
      if (file_failed_) return;
      file_error_ = error.what();
      file_failed_ = true;
    }
  });
}

}  // namespace scalemark
