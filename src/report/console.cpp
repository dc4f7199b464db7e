// Prints tf_cnn_benchmarks' lines, durations as people read them, and the progress of a plan.
#include "report/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <cstdio>

#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Returns "images" for "images/sec".
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

std::string warning_lines(const std::vector<std::string>& warnings, std::size_t told) {
  std::string lines;
  for (std::size_t i = told; i < warnings.size(); ++i)
    lines += fmt::format("warning: {}\n", shown(warnings[i]));
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

namespace {

double expected(const std::vector<PlannedSegment>& plan, std::size_t first, std::size_t last) {
  double seconds = 0;
  for (std::size_t i = first; i < last; ++i) seconds += plan[i].expected_seconds;
  return seconds;
}

}  // namespace

ProgressOutput ProgressOutput::standard() {
  return {[](const std::string& text) {
            if (is_quiet()) return;
            std::fputs(text.c_str(), stderr);
            std::fflush(stderr);
          },
          steady_seconds, isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0,
          uses_event_lines() ? decltype(ProgressOutput::event)(write_event) : nullptr};
}

PlanProgress::PlanProgress(std::vector<PlannedSegment> plan, ProgressOutput output)
    : plan_(std::move(plan)), output_(std::move(output)) {
  if (output_.event) {
    Json runs = Json::array();
    for (const PlannedSegment& segment : plan_)
      runs.push_back({{"title", segment.title}, {"expected_seconds", segment.expected_seconds}});
    output_.event("plan", {{"runs", runs}, {"expected_seconds", expected(plan_, 0, plan_.size())}});
    return;
  }
  std::string text = fmt::format("plan: {}, {} together\n", counted(plan_.size(), "run"),
                                 about_duration(expected(plan_, 0, plan_.size())));
  for (const PlannedSegment& segment : plan_)
    text += fmt::format("  {}, {}\n", segment.title, about_duration(segment.expected_seconds));
  output_.write(text);
}

void PlanProgress::start() {
  if (began_ < 0) began_ = output_.seconds();
  if (output_.event && finished_ < plan_.size())
    return output_.event(
        "run_begin",
        {{"number", finished_ + 1}, {"of", plan_.size()}, {"title", plan_[finished_].title}});
  if (output_.updating && finished_ < plan_.size())
    show(fmt::format("[{}/{}] {} ...", finished_ + 1, plan_.size(), plan_[finished_].title), false);
}

void PlanProgress::finish(double rate, const std::string& unit) {
  if (finished_ == plan_.size()) return;
  const PlannedSegment& segment = plan_[finished_++];
  const bool last = finished_ == plan_.size();
  if (output_.event)
    return output_.event("run_end", {{"number", finished_},
                                     {"of", plan_.size()},
                                     {"title", segment.title},
                                     {"throughput", rate},
                                     {"unit", unit},
                                     {"left_seconds", seconds_left()}});
  const std::string left = last ? "took " + format_duration(output_.seconds() - began_)
                                : about_duration(seconds_left()) + " left";
  show(fmt::format("[{}/{}] {}: {} {}; {}", finished_, plan_.size(), segment.title,
                   four_digits(rate), unit, left),
       last);
}

double PlanProgress::seconds_left() const {
  const double planned = expected(plan_, 0, finished_);
  const double correction = planned > 0 && began_ >= 0 ? (output_.seconds() - began_) / planned : 1;
  return correction * expected(plan_, finished_, plan_.size());
}

void PlanProgress::show(const std::string& line, bool last) {
  if (!output_.updating) return output_.write(line + "\n");
  output_.write("\r\x1b[K" + line +
                (last ? "\n" : ""));  // returns to the first column and clears the line
}

}  // namespace scalemark
