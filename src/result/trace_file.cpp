// Writes traces in the Trace Event Format.
#include "result/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace scalemark {
namespace {

/// Nanoseconds on the axis: rounded once, so that what is nested stays nested.
struct PlacedSpan {
  const Span* span;
  std::int64_t begin, end;
};

std::string escaped_json(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The format counts in microseconds.
std::string microseconds(std::int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const std::int64_t magnitude = negative ? -nanoseconds : nanoseconds;
  return fmt::format("{}{}.{:03}", negative ? "-" : "", magnitude / 1000, magnitude % 1000);
}

void add_line(std::string& text, const std::string& line) {
  if (!text.empty()) text += ",\n";
  text += line;
}

void add_names(std::string& text, const RankTrace& trace, int rank, const std::string& host) {
  const auto named = [&](const char* what, int thread, const Json& arguments) {
    add_line(text,
             fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{}}})", what, rank,
                         thread, arguments.dump(-1, ' ', false, Json::error_handler_t::replace)));
  };
  named("process_name", 0, {{"name", fmt::format("rank {} on {}", rank, host)}});
  named("process_sort_index", 0, {{"sort_index", rank}});
  for (const auto& [number, name] : trace.threads) {
    named("thread_name", number, {{"name", name}});
    named("thread_sort_index", number, {{"sort_index", number}});
  }
}

std::vector<PlacedSpan> placed_spans(const RankTrace& trace,
                                     const std::function<double(double)>& on_axis) {
  const auto place = [&](double seconds) { return std::llround(1e9 * on_axis(seconds)); };
  std::vector<PlacedSpan> placed;
  placed.reserve(trace.spans.size());
  for (const Span& span : trace.spans) {
    const std::int64_t begin = place(span.begin);
    placed.push_back({&span, begin, std::max(begin, static_cast<std::int64_t>(place(span.end)))});
  }
  std::ranges::stable_sort(placed, [](const PlacedSpan& a, const PlacedSpan& b) {
    if (a.span->thread != b.span->thread) return a.span->thread < b.span->thread;
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end > b.end;
  });
  return placed;
}

std::string arguments_of(const SpanLabel& label, const Span& span) {
  std::string arguments;
  if (!label.shapes.empty()) arguments += fmt::format(R"("shapes":{})", escaped_json(label.shapes));
  if (!label.amount.empty() && span.amount > 0)
    arguments += fmt::format(R"({}{}:{})", arguments.empty() ? "" : ",", escaped_json(label.amount),
                             span.amount);
  return arguments.empty() ? "" : fmt::format(R"(,"args":{{{}}})", arguments);
}

}  // namespace

std::string trace_events(const RankTrace& trace, int rank, const std::string& host,
                         const std::function<double(double seconds)>& on_axis) {
  std::string text;
  add_names(text, trace, rank, host);
  std::vector<std::string> titles;  // escaped once each
  for (const SpanLabel& label : trace.labels)
    titles.push_back(fmt::format(R"("name":{},"cat":{})", escaped_json(label.name),
                                 escaped_json(label.category)));
  for (const PlacedSpan& placed : placed_spans(trace, on_axis)) {
    const Span& span = *placed.span;
    add_line(text, fmt::format(R"({{"ph":"X",{},"pid":{},"tid":{},"ts":{},"dur":{}{}}})",
                               titles[span.label], rank, span.thread, microseconds(placed.begin),
                               microseconds(placed.end - placed.begin),
                               arguments_of(trace.labels[span.label], span)));
  }
  return text;
}

void TraceFile::add(std::string_view events) {
  if (!begun_) file_.append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  begun_ = true;
  if (events.empty()) return;
  if (any_) file_.append(",\n");
  any_ = true;
  file_.append(events);
}

void TraceFile::finish(const Json& about) {
  add("");
  file_.append("\n],\"otherData\":" + about.dump(-1, ' ', false, Json::error_handler_t::replace) +
               "}\n");
  file_.finish();
}

}  // namespace scalemark
