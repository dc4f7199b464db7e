// A run by time: windows of throughput with what the machine did in them, and whether it drifts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "measure/trend.hpp"
#include "record/run.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

using Reading = std::optional<double> MachineReading::*;

constexpr std::size_t kMostWindows = 500;
constexpr double kDriftLevel = 0.01;      // of p
constexpr double kSteadyFraction = 0.01;  // a change that nobody minds

/// How the ranks' values become one: the slowest clock and the hottest sensor decide.
enum class Over { least, most, sum };

struct Gauge {
  const char* key;
  Reading field;
  Known<double> record::Window::*in_window;
  Over over;
};
constexpr std::array<Gauge, 7> kGauges{
    {{"cpu_mhz", &MachineReading::cpu_mhz, &record::Window::cpu_mhz, Over::least},
     {"cpu_celsius", &MachineReading::cpu_celsius, &record::Window::cpu_celsius, Over::most},
     {"memory_bytes", &MachineReading::memory_bytes, &record::Window::memory_bytes, Over::most},
     {"gpu_mhz", &MachineReading::gpu_mhz, &record::Window::gpu_mhz, Over::least},
     {"gpu_celsius", &MachineReading::gpu_celsius, &record::Window::gpu_celsius, Over::most},
     {"gpu_watts", &MachineReading::gpu_watts, &record::Window::gpu_watts, Over::sum},
     {"gpu_memory_bytes", &MachineReading::gpu_memory_bytes, &record::Window::gpu_memory_bytes,
      Over::most}}};

/// What grows: its growth within a window, or that a second.
struct Growth {
  Reading field;
  Known<double> record::Window::*in_window;
  bool per_second;
};
constexpr std::array<Growth, 4> kGrowths{
    {{&MachineReading::host_joules, &record::Window::host_watts, true},
     {&MachineReading::busy_cpu_seconds, &record::Window::busy_cpus, true},
     {&MachineReading::nic_errors, &record::Window::nic_errors, false},
     {&MachineReading::gpu_errors, &record::Window::gpu_errors, false}}};

void merge(std::optional<double>& into, double value, Over over) {
  if (!into)
    into = value;
  else
    into = over == Over::least  ? std::min(*into, value)
           : over == Over::most ? std::max(*into, value)
                                : *into + value;
}

struct Part {
  double begin, end;
};

std::optional<double> mean_within(const std::vector<MachineReading>& readings, const Part& part,
                                  Reading field) {
  double sum = 0, count = 0;
  for (const MachineReading& reading : readings) {
    if (reading.at < part.begin || reading.at >= part.end || !(reading.*field)) continue;
    sum += *(reading.*field);
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

/// From the last reading before the window, or its first, to its last.
std::optional<double> growth_within(const std::vector<MachineReading>& readings, const Part& part,
                                    const Growth& growth) {
  const MachineReading *first = nullptr, *last = nullptr;
  for (const MachineReading& reading : readings) {
    if (reading.at >= part.end || !(reading.*growth.field)) continue;
    if (reading.at < part.begin || first == nullptr) first = &reading;
    last = &reading;
  }
  if (last == nullptr || last->at < part.begin || last->at <= first->at) return std::nullopt;
  const double more = *(last->*growth.field) - *(first->*growth.field);
  return growth.per_second ? more / (last->at - first->at) : more;
}

/// A rank's steps of each window.
struct RankWindow {
  double units = 0, seconds = 0;
  std::int64_t steps = 0;
};

std::vector<RankWindow> windows_of(const RankReport& report, double length, double usual_units) {
  std::vector<RankWindow> windows;
  const auto& seconds = report.samples.step_seconds;
  const auto& units = report.samples.units;
  double now = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    now += seconds[i];
    const auto window = static_cast<std::size_t>(now / length);
    if (windows.size() <= window) windows.resize(window + 1);
    const bool told = units.size() == seconds.size() && units[i] > 0;
    windows[window].units += told ? units[i] : usual_units;
    windows[window].seconds += seconds[i];
    ++windows[window].steps;
  }
  return windows;
}

constexpr const char* kUntold = "the machine does not tell";

void set_machine(record::Window& window, const std::vector<RankReport>& reports, const Part& part) {
  for (const Gauge& gauge : kGauges) {
    std::optional<double> value;
    for (const RankReport& report : reports)
      if (const auto mine = mean_within(report.readings, part, gauge.field))
        merge(value, *mine, gauge.over);
    window.*gauge.in_window = {value, kUntold};
  }
  for (const Growth& growth : kGrowths) {
    std::optional<double> value;
    for (const RankReport& report : reports)
      if (const auto mine = growth_within(report.readings, part, growth))
        merge(value, *mine, Over::sum);
    window.*growth.in_window = {value, kUntold};
  }
}

/// Units a second of all ranks in every window of this length, and their steps; nullopt where a
/// rank ended no step in it.
struct Rate {
  double throughput = 0, seconds = 0;
  std::int64_t steps = 0;
};
std::vector<std::optional<Rate>> rates_of(const std::vector<RankReport>& reports, double length,
                                          double units_per_step) {
  const double usual_units = units_per_step / static_cast<double>(reports.size());
  std::vector<std::optional<Rate>> rates;
  for (const RankReport& report : reports) {
    const std::vector<RankWindow> mine = windows_of(report, length, usual_units);
    if (&report == &reports.front())
      for (const RankWindow& window : mine) rates.push_back(Rate{0, window.seconds, window.steps});
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (i >= mine.size() || mine[i].steps == 0)
        rates[i].reset();
      else if (rates[i])
        rates[i]->throughput += mine[i].units / mine[i].seconds;
    }
  }
  return rates;
}

std::vector<record::Window> series_of(const std::vector<RankReport>& reports, double length,
                                      double units_per_step) {
  std::vector<record::Window> series;
  const auto rates = rates_of(reports, length, units_per_step);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!rates[i]) continue;
    const Part part{static_cast<double>(i) * length, static_cast<double>(i + 1) * length};
    record::Window& window = series.emplace_back();
    window.begin_seconds = part.begin;
    window.seconds = rates[i]->seconds;
    window.steps = rates[i]->steps;
    window.throughput = rates[i]->throughput;
    set_machine(window, reports, part);
  }
  return series;
}

/// Mean of a value in those of the windows that have it.
std::optional<double> mean_of(std::span<const record::Window> windows,
                              Known<double> record::Window::*value) {
  double sum = 0, count = 0;
  for (const record::Window& window : windows) {
    if (!(window.*value)) continue;
    sum += *(window.*value);
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

/// What changed of the machine from the first third of the windows to the last, by a hundredth or
/// more: a fraction of the first.
Entries<double> changes_beside(std::span<const record::Window> series) {
  Entries<double> changes;
  const std::size_t third = series.size() / 3;
  for (const Gauge& gauge : kGauges) {
    const auto first = mean_of(series.first(third), gauge.in_window);
    const auto last = mean_of(series.last(third), gauge.in_window);
    if (first && last && *first > 0 && std::abs(*last / *first - 1) >= kSteadyFraction)
      changes.emplace_back(gauge.key, *last / *first - 1);
  }
  return changes;
}

std::string verdict_of(const RunDrift& drift) {
  if (drift.p <= kDriftLevel && std::abs(drift.change) >= kSteadyFraction)
    return drift.change < 0 ? "slower" : "faster";
  const bool steady = drift.ci95.lo >= -kSteadyFraction && drift.ci95.hi <= kSteadyFraction;
  return steady ? "steady" : "not shown";
}

/// Returns the drift over pieces of equal length, each of two steps or more, however long the
/// windows are.
std::optional<RunDrift> drift_of(const std::vector<RankReport>& reports, double seconds,
                                 double units_per_step) {
  std::size_t pieces = kDriftValues;
  for (const RankReport& report : reports)
    pieces = std::min(pieces, report.samples.step_seconds.size() / 2);
  if (pieces < kLeastDrift) return std::nullopt;
  auto rates = rates_of(reports, seconds / static_cast<double>(pieces), units_per_step);
  rates.resize(pieces);  // what ends with the loop's last tick
  std::vector<double> values;
  for (const auto& rate : rates)
    if (rate) values.push_back(rate->throughput);
  return find_drift(values);
}

}  // namespace

Known<record::Windows> windows_of(const ResolvedConfig& config, double units_per_step,
                                  const std::vector<RankReport>& reports) {
  if (!config.window_seconds) return Unknown{"without --window_seconds no series is kept"};
  double longest = 0;
  for (const RankReport& report : reports) {
    const auto& seconds = report.samples.step_seconds;
    longest = std::max(longest, std::accumulate(seconds.begin(), seconds.end(), 0.));
    if (report.samples.slices > 0) return Unknown{"the run alternated with another"};
  }
  if (!(longest > 0)) return Unknown{"no step was completed"};
  record::Windows windows;
  windows.seconds = *config.window_seconds;
  while (longest / windows.seconds > static_cast<double>(kMostWindows)) windows.seconds *= 2;
  windows.series = series_of(reports, windows.seconds, units_per_step);
  const auto drift = drift_of(reports, longest, units_per_step);
  if (drift)
    windows.drift =
        record::Drift{verdict_of(*drift), drift->change,          drift->ci95,
                      drift->p,           drift->autocorrelation, changes_beside(windows.series)};
  else
    windows.drift = Unknown{fmt::format("fewer than {} steps: measure longer", 2 * kLeastDrift)};
  return windows;
}

}  // namespace scalemark
