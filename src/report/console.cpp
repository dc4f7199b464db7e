// tf_cnn_benchmarks' lines and durations as people read them.
#include "report/console.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// "images/sec" -> "images".
std::string counted_noun(const std::string& unit) { return unit.substr(0, unit.find('/')); }

std::string column_title(const std::string& unit) {
  if (unit == "images/sec") return "Img/sec";
  std::string title = unit;
  if (!title.empty())
    title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

}  // namespace

StepLines::StepLines(std::string unit, double units_per_step,
                     std::function<void(const std::string&)> sink, std::string last_column)
    : unit_(std::move(unit)),
      units_per_step_(units_per_step),
      sink_(std::move(sink)),
      last_column_(std::move(last_column)) {}

void StepLines::header() { sink_(fmt::format("Step\t{}\t{}", column_title(unit_), last_column_)); }

void StepLines::step(long step, double last, const std::vector<double>& step_seconds) {
  if (step_seconds.empty()) return;
  std::vector<double> rates;
  rates.reserve(step_seconds.size());
  for (const double seconds : step_seconds) rates.push_back(units_per_step_ / seconds);
  const auto n = static_cast<double>(rates.size());
  const double population_sd = standard_deviation(rates) * std::sqrt((n - 1) / n);
  sink_(fmt::format("{}\t{}/sec: {:.1f} +/- {:.1f} (jitter = {:.1f})\t{:.3f}", step,
                    counted_noun(unit_), units_per_step_ / mean(step_seconds),
                    population_sd / std::sqrt(n), median_absolute_deviation_scaled(rates), last));
}

void StepLines::total(double throughput_mean) {
  const std::string rule(64, '-');
  sink_(rule);
  sink_(fmt::format("total {}/sec: {:.2f}", counted_noun(unit_), throughput_mean));
  sink_(rule);
}

std::string warning_lines(const Json& record, std::size_t told) {
  std::string lines;
  const Json& warnings = record.at("warnings");
  for (std::size_t i = told; i < warnings.size(); ++i)
    lines += fmt::format("warning: {}\n", warnings[i].get<std::string>());
  return lines;
}

std::string format_duration(double seconds) {
  if (!(seconds < 1e9)) return "unknown";  // also NaN
  const long total = std::lround(seconds);
  if (total < 1) return "less than 1 s";
  if (total < 60) return fmt::format("{} s", total);
  if (total < 3600) return fmt::format("{} min {:02} s", total / 60, total % 60);
  const long minutes = (total + 30) / 60;
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string about_duration(double seconds) {
  const std::string text = format_duration(seconds);
  return text.starts_with("less") ? text : "about " + text;
}

}  // namespace scalemark
