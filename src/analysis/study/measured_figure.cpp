// See measured_figure.hpp.
#include "analysis/study/measured_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/intervals.hpp"
#include "config/text.hpp"

namespace scalemark {
namespace {

/// What keeps a figure from being measured.
struct NotMeasured : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Of rows without a repeat the number is 0.
using ByRepeat = std::map<std::int64_t, Json>;

bool is_pointer(const std::string& of) { return of.starts_with('/'); }

Json value_of(const StepRow& row, const std::string& of) {
  if (!is_pointer(of)) return row.value(of);
  const Json::json_pointer place(of);
  return row.part.contains(place) ? row.part.at(place) : Json();
}

bool holds(const StepRow& row, const Json& where) {
  for (const auto& [name, value] : where.items())
    if (row.value(name) != value) return false;
  for (const char* rare : {"baseline", "alone"})
    if (!where.contains(rare) && row.value(rare) == true) return false;
  return true;
}

std::string where_words(const Json& where) {
  std::vector<std::string> words;
  for (const auto& [name, value] : where.items())
    words.push_back(
        fmt::format("{} {}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  return words.empty() ? "everything" : join(words, ", ");
}

/// Of rounds where these have it, else of the points that they make up.
ByRepeat select(const std::vector<StepRow>& rows, const std::string& of, const Json& where) {
  for (const bool of_rounds : {true, false}) {
    if (of_rounds && of != "throughput" && !is_pointer(of)) continue;
    ByRepeat values;
    for (const StepRow& row : rows) {
      if (row.of_round != of_rounds || !holds(row, where)) continue;
      const Json value = value_of(row, of);
      if (value.is_null() || value.is_structured()) continue;
      if (!values.emplace(row.repeat.value_or(0), value).second)
        throw NotMeasured(fmt::format("{} holds for more than one point", where_words(where)));
    }
    if (!values.empty()) return values;
  }
  throw NotMeasured(fmt::format("no {} where {}", of, where_words(where)));
}

const std::vector<StepRow>& rows_of(const RowsOfSteps& all, const std::string& step) {
  const auto found = all.find(step);
  if (found == all.end()) throw NotMeasured(fmt::format("the step {} has no result", step));
  return found->second;
}

double number_of(const Json& value, const std::string& of) {
  if (!value.is_number()) throw NotMeasured(of + " is no number");
  return value;
}

std::vector<double> numbers(const ByRepeat& values, const std::string& of) {
  std::vector<double> all;
  for (const auto& [repeat, value] : values) all.push_back(number_of(value, of));
  return all;
}

/// Of the repeats that both have.
std::vector<double> ratios(const ByRepeat& above, const ByRepeat& below, const Reading& reading) {
  std::vector<double> all;
  for (const auto& [repeat, value] : above) {
    const auto other = below.find(repeat);
    if (other == below.end()) continue;
    const double under = number_of(other->second, reading.over_of);
    if (under == 0) throw NotMeasured("the ratio is over 0");
    all.push_back(number_of(value, reading.of) / under);
  }
  if (all.empty()) throw NotMeasured("no repeat has both values of the ratio");
  return all;
}

MeasuredFigure summarised(const std::vector<double>& values) {
  MeasuredFigure measured;
  measured.repeats = values.size();
  if (values.size() == 1) {
    measured.value = values.front();  // exact, where it is arithmetic
    return measured;
  }
  const bool positive = std::ranges::all_of(values, [](double value) { return value > 0; });
  std::vector<double> logs;
  for (const double value : values) logs.push_back(positive ? std::log(value) : value);
  measured.value = positive ? std::exp(mean(logs)) : mean(logs);
  measured.ci95 = positive ? log_interval(values) : student_interval(values);
  return measured;
}

template <typename F>
void transform(MeasuredFigure& measured, F change) {
  measured.value = change(measured.value.get<double>());
  if (measured.ci95) measured.ci95 = Interval{change(measured.ci95->lo), change(measured.ci95->hi)};
}

MeasuredFigure measure(const Figure& figure, const RowsOfSteps& rows) {
  const Reading& reading = *figure.reading;
  const ByRepeat above = select(rows_of(rows, reading.step), reading.of, reading.where);
  if (reading.over.is_null() && !above.begin()->second.is_number()) {
    const Json& first = above.begin()->second;
    for (const auto& [repeat, value] : above)
      if (value != first)
        throw NotMeasured(fmt::format("{} is not the same in every repeat", reading.of));
    return {.value = first, .ci95 = {}, .repeats = above.size(), .reason = ""};
  }
  MeasuredFigure measured = summarised(
      reading.over.is_null()
          ? numbers(above, reading.of)
          : ratios(above, select(rows_of(rows, reading.over_step), reading.over_of, reading.over),
                   reading));
  transform(measured, [&](double value) {
    return is_percent(figure.published.at("unit").get<std::string>())
               ? 100 * (reading.times * value - 1)
               : reading.times * value;
  });
  return measured;
}

std::optional<FigureVerdict> by_bounds(bool wholly_in, bool wholly_out) {
  return wholly_in    ? FigureVerdict::shown
         : wholly_out ? FigureVerdict::opposite
                      : FigureVerdict::not_shown;
}

}  // namespace

MeasuredFigure measure_figure(const Figure& figure, const RowsOfSteps& rows) {
  if (!figure.reading) return {.reason = std::string(kNotOfThisProfile)};
  try {
    return measure(figure, rows);
  } catch (const NotMeasured& why) {
    return {.reason = why.what()};
  }
}

std::optional<FigureVerdict> judge(const Json& expect, const MeasuredFigure& measured) {
  if (expect.is_null() || measured.value.is_null()) return std::nullopt;
  if (expect.contains("equals")) {
    const Json& wanted = expect["equals"];
    const bool same = wanted.is_number() && measured.value.is_number()
                          ? std::abs(measured.value.get<double>() - wanted.get<double>()) <=
                                1e-9 * std::abs(wanted.get<double>())
                          : wanted == measured.value;
    return by_bounds(same, !same);
  }
  if (!measured.value.is_number()) return FigureVerdict::not_shown;
  const double value = measured.value;
  const Interval range = measured.ci95.value_or(Interval{value, value});
  double low = expect.value("above", -INFINITY), high = expect.value("below", INFINITY);
  if (expect.contains("within_percent")) {
    high = expect["within_percent"];
    low = -high;
  }
  return by_bounds(range.lo > low && range.hi < high, range.hi < low || range.lo > high);
}

std::string expectation_words(const Json& expect) {
  std::vector<std::string> words;
  const auto say = [&](const char* key, const char* format) {
    if (expect.contains(key))
      words.push_back(fmt::format(fmt::runtime(format), expect[key].is_string()
                                                            ? expect[key].get<std::string>()
                                                            : expect[key].dump()));
  };
  if (expect.is_null()) return "";
  say("above", "above {}");
  say("below", "below {}");
  say("within_percent", "within {} %");
  say("equals", "{}");
  return join(words, ", ");
}

bool is_percent(std::string_view unit) { return unit == "percent" || unit == "same"; }

Json figure_difference(const std::string& unit, const Json& from, const Json& to) {
  if (!from.is_number() || !to.is_number()) return nullptr;
  const double a = from, b = to;
  if (is_percent(unit)) return {{"amount", b - a}, {"unit", "points"}};
  if (a == 0) return nullptr;
  return {{"amount", 100 * (b / a - 1)}, {"unit", "percent"}};
}

std::optional<double> published_number(const Json& published) {
  if (published.contains("value")) return published["value"].get<double>();
  if (published.contains("low") && published.contains("high"))
    return (published["low"].get<double>() + published["high"].get<double>()) / 2;
  return std::nullopt;
}

}  // namespace scalemark
