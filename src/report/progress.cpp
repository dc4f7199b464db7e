// The plan of a curve and how far it has come.
#include "report/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "measure/clock.hpp"
#include "report/console.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
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
                (last ? "\n" : ""));  // back to the first column and clear the line
}

}  // namespace scalemark
