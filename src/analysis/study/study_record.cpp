// Judges the figures of a study, and makes its record.
#include "analysis/study/study_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/flat_rows.hpp"
#include "config/json_text.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "measure/spreads.hpp"
#include "measure/statistics.hpp"
#include "record/instances.hpp"
#include "record/preflight.hpp"
#include "record/scaling.hpp"
#include "result/outcome.hpp"
#include "result/records.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// A column of a row.
constexpr const char* kThroughput = "throughput";

Json columns_of(const std::vector<Json>& row) {
  Json columns = Json::object();
  for (std::size_t i = 0; i < row.size(); ++i)
    columns[std::string(flat_columns()[i].name)] = row[i];
  return columns;
}

/// The repeats of a curve's point or of instances: their throughput, with what else the point is.
void add_rounds(std::vector<StepRow>& rows, const StepRow& point) {
  using record::CurveRepeat;
  const auto repeats = point.part.find(key_of(&record::ScalingPoint::repeats));
  if (repeats == point.part.end()) return;
  std::int64_t number = 0, baselines = 0;
  for (const Json& repeat : *repeats) {
    StepRow row = point;
    const bool baseline = repeat.value(key_of(&CurveRepeat::baseline), false);
    const std::int64_t place = ++(baseline ? baselines : number);
    const Json own = repeat.value(key_of(&CurveRepeat::repeat), Json());
    row.repeat = own.is_number_integer() ? own.get<std::int64_t>() : place;
    row.part = repeat;
    row.part[key_of(&CurveRepeat::baseline)] = baseline;
    row.columns[kThroughput] = repeat.at(key_of(&CurveRepeat::throughput));
    row.of_round = true;
    rows.push_back(std::move(row));
  }
}

/// Each slot of instances without neighbours.
void add_alone(std::vector<StepRow>& rows, const Json& record) {
  for (const Json& slot : record.at(key_of(&InstancesResult::alone))) {
    StepRow row{.columns = {{"alone", true},
                            {"slot", slot.at(key_of(&record::SlotAlone::slot))},
                            {kThroughput, slot.at(key_of(&record::SlotAlone::throughput))}},
                .part = slot};
    rows.push_back(row);
    add_rounds(rows, row);
  }
}

/// A row for each element of `record[list]`.
std::vector<StepRow> parts_of(const Json& record, const char* list) {
  std::vector<StepRow> rows;
  for (const Json& part : record.at(list)) rows.push_back({.part = part});
  return rows;
}

/// Launches of an earlier plan stay in a sweep's folder.
bool is_planned(const JournalEntry& entry, const std::optional<PlannedLaunches>& planned) {
  return !planned || (entry.repeat <= planned->repeats &&
                      std::ranges::find(planned->points, entry.point,
                                        &PlannedLaunches::Point::id) != planned->points.end());
}

std::vector<StepRow> launches_of(const fs::path& folder, const std::string& revision) {
  const auto planned = read_planned(folder);
  std::vector<StepRow> rows;
  for (const JournalEntry& entry : last_entries(read_journal(journal_of(folder)))) {
    if (entry.record.empty() || entry.revision != revision || !is_planned(entry, planned)) continue;
    for (StepRow& row : step_rows(record_of(folder, entry))) {
      row.settings = entry.settings;
      row.repeat = entry.repeat;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

Json StepRow::value(const std::string& name) const {
  if (settings.contains(name)) return settings[name];
  if (columns.contains(name) && !columns[name].is_null()) return columns[name];
  return part.is_object() ? part.value(name, Json()) : Json();
}

std::vector<StepRow> step_rows(const Json& record) {
  const char* points_key = key_of(&ScalingCurve::points);
  const std::string kind = kind_of(record);
  if (kind == "preflight") return parts_of(record, key_of(&PreflightResult::checks));
  if (!has_flat_rows(kind)) return parts_of(record, points_key);
  const auto flat = flat_rows(record, {});
  std::vector<StepRow> rows;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const bool point = record.contains(points_key) && i < record[points_key].size();
    rows.push_back(
        {.columns = columns_of(flat[i]), .part = point ? record[points_key][i] : record});
  }
  for (std::size_t i = 0; i < flat.size(); ++i) add_rounds(rows, StepRow(rows[i]));
  if (kind == "instances") add_alone(rows, record);
  return rows;
}

std::vector<StepRow> read_step_rows(const fs::path& result, const std::string& revision) {
  return fs::is_directory(result) ? launches_of(result, revision) : step_rows(read_record(result));
}

std::vector<StepRow> plan_rows(const Json& plan) {
  auto points = parts_of(plan, key_of(&ScalingCurve::points));
  for (StepRow& point : points) point.planned = true;
  return points;
}

std::vector<StepRow> read_plan_rows(const fs::path& plan) {
  try {
    return plan_rows(parse_json_text(read_input_file(plan, kLargestRecord), kDeepestRecord));
  } catch (const InputFault& fault) {
    throw ResultError(fmt::format("{}: {}", plan.string(), fault.what()));
  } catch (const JsonFault& fault) {
    throw ResultError(fmt::format("{}: not JSON: {}", plan.string(), fault.what()));
  }
}

namespace {

/// What keeps a figure from being measured.
struct NotMeasured : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Values by their repeat; rows without one have the number 0.
using ByRepeat = std::map<std::int64_t, Json>;

bool is_pointer(const std::string& of) { return of.starts_with('/'); }

Json value_of(const StepRow& row, const std::string& of) {
  if (!is_pointer(of)) return row.value(of);
  const Json::json_pointer place(of);
  return row.part.contains(place) ? row.part.at(place) : Json();
}

bool holds(const StepRow& row, const Where& where) {
  for (const auto& [name, value] : where)
    if (row.value(name) != value) return false;
  for (const char* rare : {"baseline", "alone"})
    if (std::ranges::find(where, rare, &Where::value_type::first) == where.end() &&
        row.value(rare) == true)
      return false;
  return true;
}

std::string where_words(const Where& where) {
  std::vector<std::string> words;
  for (const auto& [name, value] : where)
    words.push_back(
        fmt::format("{} {}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  return words.empty() ? "everything" : join(words, ", ");
}

/// Reads rounds where these have the value, else the points that they make up.
ByRepeat select(const std::vector<StepRow>& rows, const std::string& of, const Where& where) {
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

/// Whether both sides of the ratio are of one step, which measures them side by side.
bool is_paired(const Reading& reading) {
  return reading.over_step.empty() || reading.over_step == reading.step;
}

/// Returns the logarithms; each value must be above 0.
std::vector<double> positive_logs(const ByRepeat& values, const std::string& of) {
  std::vector<double> logs;
  for (const double value : numbers(values, of)) {
    if (!(value > 0))
      throw NotMeasured(fmt::format("{} of a ratio of two steps is not above 0", of));
    logs.push_back(std::log(value));
  }
  return logs;
}

/// Returns the ratio of two geometric means, with Welch's interval where both have repeats: what
/// was measured one after the other has no pairs.
MeasuredFigure unpaired_ratio(const ByRepeat& above, const ByRepeat& below,
                              const Reading& reading) {
  const std::vector<double> x = positive_logs(above, reading.of),
                            y = positive_logs(below, reading.over_of);
  const double shift = mean(x) - mean(y);
  MeasuredFigure measured{.value = std::exp(shift), .repeats = std::min(x.size(), y.size())};
  if (measured.repeats < 2) return measured;
  const auto test = welch_shift(y, x);
  const double half = test ? test->error * student_quantile(0.95, test->degrees_of_freedom) : 0;
  measured.ci95 = Interval{std::exp(shift - half), std::exp(shift + half)};
  return measured;
}

/// Returns the ratios of the repeats that both have.
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

/// The interval that the record itself has of the only value that was read; unknown without one.
Known<Interval> own_interval(const std::vector<StepRow>& rows, const Reading& reading) {
  for (const StepRow& row : rows) {
    if (row.of_round || !holds(row, reading.where) || value_of(row, reading.of).is_null()) continue;
    const Json interval = value_of(row, reading.of + "_ci95");
    if (interval.is_array() && interval.size() == 2 && interval[0].is_number() &&
        interval[1].is_number())
      return Interval{interval[0], interval[1]};
  }
  return {};
}

MeasuredFigure summarised(const std::vector<double>& values) {
  MeasuredFigure measured{.repeats = values.size()};
  if (values.size() == 1) {
    measured.value = values.front();
    return measured;
  }
  const bool positive = std::ranges::all_of(values, [](double value) { return value > 0; });
  std::vector<double> logs;
  for (const double value : values) logs.push_back(positive ? std::log(value) : value);
  const double value = positive ? std::exp(mean(logs)) : mean(logs);
  measured.value = value;
  measured.ci95 = {positive ? log_interval(values, value) : student_interval(values), ""};
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
  if (!reading.over && !above.begin()->second.is_number()) {
    const Json& first = above.begin()->second;
    for (const auto& [repeat, value] : above)
      if (value != first)
        throw NotMeasured(fmt::format("{} is not the same in every repeat", reading.of));
    return {.value = first, .repeats = above.size()};
  }
  MeasuredFigure measured;
  if (!reading.over) {
    measured = summarised(numbers(above, reading.of));
  } else {
    const ByRepeat below = select(rows_of(rows, reading.over_step), reading.over_of, *reading.over);
    measured = is_paired(reading) ? summarised(ratios(above, below, reading))
                                  : unpaired_ratio(above, below, reading);
  }
  if (measured.repeats == 1 && !reading.over)
    measured.ci95 = own_interval(rows_of(rows, reading.step), reading);
  transform(measured, [&](double value) {
    return is_percent(figure.unit) ? 100 * (reading.times * value - 1) : reading.times * value;
  });
  return measured;
}

/// Whether a value by this name is counted, or follows from the seed: no repeat would change it.
bool is_counted(std::string_view of) {
  const std::string_view name = of.substr(of.rfind('/') + 1);
  for (const char* measured : {"second", "peak"})
    if (name.find(measured) != name.npos) return false;
  constexpr std::array kCounted{"bytes", "steps", "batch_size", "loss", "samples", "tokens"};
  return std::ranges::any_of(kCounted,
                             [&](std::string_view counted) { return of.find(counted) != of.npos; });
}

bool is_exact_value(const RowsOfSteps& all, const std::string& step, const std::string& of) {
  const auto rows = all.find(step);
  return is_counted(of) ||
         (rows != all.end() && std::ranges::all_of(rows->second, &StepRow::planned));
}

std::optional<FigureVerdict> by_bounds(bool wholly_in, bool wholly_out) {
  return wholly_in    ? FigureVerdict::shown
         : wholly_out ? FigureVerdict::opposite
                      : FigureVerdict::not_shown;
}

}  // namespace

Known<MeasuredFigure> measure_figure(const Figure& figure, const RowsOfSteps& rows) {
  if (!figure.reading) return Unknown{std::string(kNotOfThisProfile)};
  try {
    return measure(figure, rows);
  } catch (const NotMeasured& why) {
    return Unknown{why.what()};
  }
}

bool is_exact(const Figure& figure, const RowsOfSteps& rows) {
  if (!figure.reading) return false;
  const Reading& reading = *figure.reading;
  return is_exact_value(rows, reading.step, reading.of) &&
         (!reading.over || is_exact_value(rows, reading.over_step, reading.over_of));
}

std::optional<FigureVerdict> judge(const std::optional<Expectation>& expect,
                                   const Known<MeasuredFigure>& measured, bool exact) {
  if (!expect || !measured) return std::nullopt;
  const Known<double> number = number_of(measured);
  if (const Json& wanted = expect->equals; !wanted.is_null()) {
    const bool same = wanted.is_number() && number ? std::abs(*number - wanted.get<double>()) <=
                                                         1e-9 * std::abs(wanted.get<double>())
                                                   : wanted == measured->value;
    return by_bounds(same, !same);
  }
  if (!number || (!measured->ci95 && !exact)) return FigureVerdict::not_shown;
  const Interval range = measured->ci95.value_or(Interval{*number, *number});
  const double high = expect->within_percent.value_or(expect->below.value_or(INFINITY));
  const double low = expect->within_percent ? -high : expect->above.value_or(-INFINITY);
  return by_bounds(range.lo > low && range.hi < high, range.hi < low || range.lo > high);
}

bool is_lone_value(const record::StudyFigure& figure) {
  return figure.verdict == FigureVerdict::not_shown && number_of(figure.measured) &&
         !figure.measured->ci95;
}

std::string expectation_words(const std::optional<Expectation>& expect) {
  if (!expect) return "";
  std::vector<std::string> words;
  if (expect->above) words.push_back(fmt::format("above {}", *expect->above));
  if (expect->below) words.push_back(fmt::format("below {}", *expect->below));
  if (expect->within_percent) words.push_back(fmt::format("within {} %", *expect->within_percent));
  if (const Json& equals = expect->equals; !equals.is_null())
    words.push_back(equals.is_string() ? equals.get<std::string>() : equals.dump());
  return join(words, ", ");
}

bool is_percent(std::string_view unit) { return unit == "percent" || unit == "same"; }

Known<double> number_of(const Known<MeasuredFigure>& measured) {
  return measured && measured->value.is_number() ? Known(measured->value.get<double>())
                                                 : Known<double>();
}

Known<record::FigureDifference> figure_difference(const std::string& unit,
                                                  const Known<double>& from,
                                                  const Known<double>& to) {
  if (!from || !to) return {};
  if (is_percent(unit)) return record::FigureDifference{*to - *from, "points"};
  if (*from == 0) return {};
  return record::FigureDifference{100 * (*to / *from - 1), "percent"};
}

Known<double> published_number(const record::Published& published) {
  if (published.value) return published.value->get<double>();
  if (!published.low || !published.high) return {};
  return (published.low->get<double>() + published.high->get<double>()) / 2;
}

namespace {

record::StudyFigure figure_of(const Figure& figure, const RowsOfSteps& rows) {
  const auto expect = figure.reading ? figure.reading->expect : std::nullopt;
  const Known<MeasuredFigure> measured = measure_figure(figure, rows);
  record::StudyFigure made;
  made.name = figure.name;
  made.unit = figure.unit;
  made.published = figure.published;
  made.reason = measured.why();
  if (measured) made.measured = measured;
  made.difference =
      figure_difference(figure.unit, published_number(figure.published), number_of(measured));
  made.expected = known_text(expectation_words(expect));
  made.verdict = {judge(expect, measured, is_exact(figure, rows)), ""};
  return made;
}

/// Says what became of a figure that is not shown, and what would help where it is one value.
std::string verdict_warning(const record::StudyFigure& figure) {
  if (!is_lone_value(figure)) return fmt::format("{}: {}", figure.name, to_string(*figure.verdict));
  return fmt::format(
      "{}: one value: not shown: without repeats there is no interval; measure its step again "
      "with `repeats` in the plan of a sweep, or --repeats",
      figure.name);
}

/// What a machine did between two steps is in a figure of both.
std::string drift_warning(const Figure& figure, const RowsOfSteps& rows) {
  if (!figure.reading || !figure.reading->over || is_paired(*figure.reading)) return "";
  if (is_exact(figure, rows) || !measure_figure(figure, rows)) return "";
  return fmt::format(
      "{}: {} and {} were measured one after the other: a drift of the machine between them is in "
      "it",
      figure.name, figure.reading->step, figure.reading->over_step);
}

record::MeasuredOn measured_on(const RowsOfSteps& rows) {
  const auto first = [&](const char* column) {
    for (const auto& [step, all] : rows)
      for (const StepRow& row : all)
        if (const auto found = row.columns.find(column);
            found != row.columns.end() && !found->is_null())
          return *found;
    return Json();
  };
  const auto text = [&](const char* column) {
    const Json found = first(column);
    return found.is_string() ? Known(found.get<std::string>()) : Known<std::string>();
  };
  const Json gpu = first("gpu");
  return {text("host"),
          text("cpu_model"),
          gpu.is_null() ? Known<Json>() : Known<Json>(gpu),
          text("virtualisation"),
          text("kernel"),
          text("mpi"),
          text("nccl")};
}

Outcome outcome_of(const std::vector<StepState>& states) {
  const auto named = [&](StepStatus status) {
    std::vector<std::string> names;
    for (const StepState& state : states)
      if (state.status == status) names.push_back(state.name);
    return join(names, ", ");
  };
  if (const auto names = named(StepStatus::interrupted); !names.empty())
    return {Status::interrupted, "interrupted in " + names};
  if (const auto names = named(StepStatus::failed); !names.empty())
    return {Status::failed, "failed: " + names};
  if (const auto names = named(StepStatus::waiting); !names.empty())
    return {Status::interrupted, "not yet measured: " + names};
  if (named(StepStatus::ok).empty()) return {Status::failed, "every step was skipped"};
  return {};
}

/// Returns how many launches of each step warn, and what the first of them says.
std::vector<std::string> warnings_of_launches(const RowsOfSteps& rows) {
  std::vector<std::string> warnings;
  for (const auto& [step, all] : rows) {
    std::size_t launches = 0, warned = 0;
    std::string first;
    for (const StepRow& row : all) {
      if (row.of_round || row.columns.value("row", Json()) != "launch") continue;
      ++launches;
      const std::string words = row.columns.at("warnings").get<std::string>();
      if (words.empty()) continue;
      ++warned;
      if (first.empty()) first = words.substr(0, words.find(';'));
    }
    if (warned > 0)
      warnings.push_back(
          fmt::format("{}: {} of {} launches have warnings: {}", step, warned, launches, first));
  }
  return warnings;
}

/// What a reader of the table alone would miss.
std::vector<std::string> warnings_of(const std::vector<StepState>& states,
                                     const std::vector<record::StudyFigure>& figures,
                                     const RowsOfSteps& rows) {
  std::vector<std::string> warnings = warnings_of_launches(rows);
  for (const StepState& state : states)
    if (state.status != StepStatus::ok)
      warnings.push_back(fmt::format("{}: {}{}{}", state.name, to_string(state.status),
                                     state.reason.empty() ? "" : ": ", state.reason));
  for (const record::StudyFigure& figure : figures)
    if (figure.verdict && figure.verdict != FigureVerdict::shown)
      warnings.push_back(verdict_warning(figure));
  return warnings;
}

}  // namespace

StudyResult make_study_record(const Study& study, const StudyProfile& profile,
                              const std::string& site, const std::vector<StepState>& states,
                              const RowsOfSteps& rows) {
  StudyResult result;
  set_envelope(result, "study", outcome_of(states));
  result.study = study.name;
  result.title = study.title;
  result.publication = study.publication;
  result.published_on = study.published_on;
  result.not_stated = study.not_stated;
  result.profile = profile.name;
  result.site = site;
  result.evidence = profile.evidence;
  result.shows = profile.shows;
  result.differs = profile.differs;
  result.measured_on = measured_on(rows);
  result.steps = states;
  for (const StepState& state : states) result.wall_seconds += state.seconds.value_or(0);
  for (const Figure& figure : profile.figures) result.figures.push_back(figure_of(figure, rows));
  result.warnings = warnings_of(states, result.figures, rows);
  for (const Figure& figure : profile.figures)
    if (const std::string words = drift_warning(figure, rows); !words.empty())
      result.warnings.push_back(words);
  diagnosis::add_findings(result);
  return result;
}

}  // namespace scalemark
