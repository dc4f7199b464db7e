// Prints the tables at the end of `scale`, of one curve and of several, from what the records say.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/scaling/scaling.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using record::ScalingPoint;

std::string config_text(const ScalingCurve& curve, const char* key) {
  const Json& value = setting(curve.config, key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_of(const Known<Json>& value) {
  if (!value) return "null";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

/// Returns text like "139.6 [138.1, 141.1]", or only the centre where there is no interval.
template <typename Format>
std::string with_interval(const Known<double>& centre, const Known<Interval>& interval,
                          Format format) {
  if (!centre) return kNone;
  if (!interval) return format(*centre);
  return fmt::format("{} [{}, {}]", format(*centre), format(interval->lo), format(interval->hi));
}

std::string in_milliseconds(double seconds) { return fmt::format("{:.1f}", 1000 * seconds); }

/// Returns text like "12.3 [11.9, 12.7] ms (3.1 %)" or "not distinguishable from 0 [-0.1, 0.4] ms".
/// The share of the step is 1 - throughput / baseline throughput, which is known against a baseline
/// only.
std::string exposed(const ScalingPoint& point) {
  if (!point.exposed_seconds) return kNone;
  const Known<Interval>& bounds = point.exposed_ci95;
  if (bounds && bounds->lo <= 0 && bounds->hi >= 0)
    return fmt::format("not distinguishable from 0 [{}, {}] ms", in_milliseconds(bounds->lo),
                       in_milliseconds(bounds->hi));
  const std::string text = with_interval(point.exposed_seconds, bounds, in_milliseconds) + " ms";
  if (*point.exposed_seconds < 0) return text + ": noise, the baseline is slower";
  if (point.exposed_method != "baseline") return text;
  const double share = 1 - *point.throughput / *point.baseline_throughput;
  return fmt::format("{} ({:.1f} %)", text, 100 * share);
}

/// Says which columns the table has that only some curves need.
struct Columns {
  bool solution = false, target = false;
};

Columns columns_of(const ScalingCurve& curve) {
  const ScalingPoint& point = curve.points.front();
  return {point.time_to_solution_seconds.has_value(), point.target.has_value()};
}

std::vector<std::string> header(const ScalingCurve& curve, const Columns& columns) {
  std::vector<std::string> titles{"ranks", curve.unit, "speedup",
                                  curve.resource == Resource::rank
                                      ? "efficiency"
                                      : "efficiency by " + to_string(curve.resource),
                                  "exposed communication"};
  if (columns.solution) {
    titles.insert(titles.begin() + 1, "batch");
    titles.insert(titles.end(), {"time to solution", "its speedup (efficiency)"});
  }
  if (columns.target)
    for (const char* what : {"steps to ", "seconds to "})
      titles.push_back(what + config_text(curve, "target_loss"));
  return titles;
}

std::string two_decimals(double value) { return fmt::format("{:.2f}", value); }

/// Returns text like "3.98 [3.90, 4.06] (99.5 %)".
std::string solution_speedup(const ScalingPoint& point) {
  const std::string text = with_interval(point.time_to_solution_speedup,
                                         point.time_to_solution_speedup_ci95, two_decimals);
  if (!point.time_to_solution_efficiency) return text;
  return fmt::format("{} ({:.1f} %)", text, 100 * *point.time_to_solution_efficiency);
}

/// Returns the cells for steps and seconds to the target loss.
std::array<std::string, 2> target_cells(const record::PointTarget& target) {
  if (!target.steps || !target.seconds) return {kNone, "not reached"};
  return {fmt::format("{:.0f}", *target.steps), four_digits(*target.seconds)};
}

std::vector<std::string> row(const ScalingPoint& point, const Columns& columns) {
  const double rate = *point.throughput;
  std::vector<std::string> cells{
      std::to_string(point.ranks),
      with_interval(point.throughput, point.ci95,
                    [rate](double v) { return four_digits(v, rate); }),
      with_interval(point.speedup, point.speedup_ci95, two_decimals),
      with_interval(point.efficiency, point.efficiency_ci95,
                    [](double v) { return fmt::format("{:.1f} %", 100 * v); }),
      exposed(point)};
  if (columns.solution) {
    cells.insert(cells.begin() + 1, std::to_string(point.batch_size_per_rank));
    cells.push_back(four_digits(*point.time_to_solution_seconds) + " s");
    cells.push_back(solution_speedup(point));
  }
  if (columns.target)
    for (const std::string& cell : target_cells(*point.target)) cells.push_back(cell);
  return cells;
}

std::string interval_note(const ScalingCurve& curve) {
  std::set<std::ptrdiff_t> numbers;
  for (const ScalingPoint& point : curve.points)
    numbers.insert(std::ranges::count(point.repeats, false, &record::CurveRepeat::baseline));
  const bool in_process = curve.repeat_unit == RepeatUnit::in_process;
  if (*numbers.rbegin() < 2)
    return in_process ? "No intervals: one repeat only (--repeats).\n"
                      : "No intervals: one launch of each point only.\n";
  const std::string counted = numbers.size() == 1
                                  ? fmt::format("{}", *numbers.begin())
                                  : fmt::format("{} to {}", *numbers.begin(), *numbers.rbegin());
  if (in_process)
    return fmt::format(
        "[ ]: 95 % interval, Student's t over {} repeats in one launch; speedup and efficiency "
        "paired by round.\nIt says nothing of other launches.\n",
        counted);
  return fmt::format(
      "[ ]: 95 % interval, Student's t over the logarithms of {} fresh launches of each point; "
      "speedup and\nefficiency paired by repeat, which is one pass of the sweep through all "
      "points.\n",
      counted);
}

std::string solution_note(const ScalingCurve& curve, const Columns& columns) {
  if (!columns.solution) return "";
  const std::string steps = config_text(curve, "solution_steps");
  const Json& base = setting(curve.config, "base_solution_steps");
  return fmt::format(
      "Batch: samples of a rank. Time to solution: {} steps of the mean step{}; its speedup is "
      "that of these times.\n",
      steps, base.is_null() ? "" : fmt::format(" ({} of the base)", base.dump()));
}

std::string dip_note(const ScalingCurve& curve) {
  std::string text;
  for (const ScalingPoint& point : curve.points)
    if (point.trend && point.trend->dip)
      text += fmt::format(
          "dip: {} ranks reach {:.1f} % where the points beside them let expect {:.1f} %\n",
          point.ranks, 100 * *point.efficiency, 100 * point.trend->expected_efficiency);
  return text;
}

std::string exposed_note(const ScalingCurve& curve) {
  bool baseline = false, wait = false;
  for (const ScalingPoint& point : curve.points) {
    baseline = baseline || point.exposed_method == "baseline";
    wait = wait || point.exposed_method == "wait";
  }
  if (baseline)
    return "Exposed communication: mean step minus that of the same ranks without communication "
           "(share of the step).\n";
  if (wait)
    return "Exposed communication: waiting time per step, mean over ranks; no baseline was "
           "measured.\n";
  return "";
}

/// Lists what each collective adds to a step by itself.
std::string collectives_note(const ScalingCurve& curve) {
  std::string text;
  for (const ScalingPoint& point : curve.points)
    if (point.exposed_collectives)
      for (const auto& one : *point.exposed_collectives) {
        if (!one.exposed_seconds) continue;
        text += fmt::format("  {} ranks, {}: {} ms\n", point.ranks, one.collective,
                            with_interval(one.exposed_seconds, one.exposed_ci95, in_milliseconds));
      }
  if (text.empty()) return "";
  return "By collective: mean step minus that of the same ranks without it.\n" + text;
}

/// Plots the speedup on a terminal, whose width is known, and nowhere else.
std::string speedup_plot(const ScalingCurve& curve) {
  constexpr std::size_t kFewest = 2, kMost = 40;
  const auto columns = output_columns();
  if (!columns || curve.points.size() < kFewest || curve.points.size() > kMost) return "";
  std::vector<Bar> plot;
  for (const ScalingPoint& point : curve.points) {
    if (!point.efficiency) return "";
    const double ideal = *point.speedup / *point.efficiency;
    plot.push_back({std::to_string(point.ranks), *point.speedup, ideal,
                    fmt::format("{:.2f} of {:g}", *point.speedup, ideal)});
  }
  return "ranks and speedup, of the ideal\n" + bars(plot, *columns, writes_utf8()) + "\n";
}

/// Says why the curve falls short, or that it does not.
std::string finding_section(const ScalingCurve& curve) {
  const std::string lines = finding_lines(curve.findings);
  return lines.empty() ? "" : "\n" + lines;
}

/// Says what the curve is of.
std::string title_of(const ScalingCurve& curve) {
  std::string title =
      fmt::format("{} scaling of {}, {}", curve.scaling == Scaling::weak ? "Weak" : "Strong",
                  config_text(curve, "model"), config_text(curve, "precision")) +
      kernels_words(curve.config);
  for (const auto& [name, value] : curve.settings)
    if (name != "model" && name != "precision" && name != "global_batch_size" && name != "kernels")
      title += fmt::format(", {} {}", shown(name), shown(text_of(value)));
  if (!setting(curve.config, "global_batch_size").is_null())
    title += ", global batch " + config_text(curve, "global_batch_size");
  return title;
}

}  // namespace

std::string scaling_table(const ScalingCurve& curve, std::size_t told) {
  const std::string title = title_of(curve);
  if (curve.status != Status::ok)
    return fmt::format("{}: no table, the curve is {}: {}\n", title, to_string(curve.status),
                       curve.reason);
  const Columns columns = columns_of(curve);
  std::vector<std::vector<std::string>> rows{header(curve, columns)};
  for (const ScalingPoint& point : curve.points) rows.push_back(row(point, columns));
  return title + "\n\n" + text_table(rows) + "\n" + speedup_plot(curve) + dip_note(curve) +
         interval_note(curve) + exposed_note(curve) + collectives_note(curve) +
         solution_note(curve, columns) + warning_lines(curve.warnings, told) +
         finding_section(curve);
}

namespace {

std::string ratio_text(const CurveRatio& ratio) {
  if (!ratio.ci95) return fmt::format("{:.3f}", ratio.ratio);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.ratio, ratio.ci95->lo, ratio.ci95->hi);
}

/// Returns a table with a line per rank count: the throughput of every curve, then its ratio to
/// that of the first.
std::string throughput_table(const std::vector<std::string>& names,
                             const std::vector<ScalingCurve>& curves) {
  std::vector<std::string> header{"ranks"};
  std::map<std::int64_t, std::vector<std::string>> rows;  // [ranks]: a cell for each column
  const auto add_column = [&](const std::string& title) {
    header.push_back(title);
    for (auto& [ranks, cells] : rows) cells.resize(header.size(), kNone);
  };
  for (const ScalingCurve& curve : curves)
    for (const ScalingPoint& point : curve.points)
      rows[point.ranks] = {std::to_string(point.ranks)};
  for (std::size_t curve = 0; curve < curves.size(); ++curve) {
    add_column(names[curve]);
    for (const ScalingPoint& point : curves[curve].points)
      rows[point.ranks].back() = four_digits(*point.throughput);
  }
  for (std::size_t curve = 1; curve < curves.size(); ++curve) {
    add_column(fmt::format("{} over {}", names[curve], names.front()));
    for (const CurveRatio& ratio : curve_ratios(curves[curve], curves.front()))
      rows[ratio.ranks].back() = ratio_text(ratio);
  }
  std::vector<std::vector<std::string>> table{header};
  for (auto& [ranks, cells] : rows) table.push_back(std::move(cells));
  return text_table(table);
}

/// Returns a table of steps and seconds to the target loss, or an empty text where none was asked
/// for.
std::string target_table(const std::vector<std::string>& names,
                         const std::vector<ScalingCurve>& curves) {
  std::vector<std::vector<std::string>> rows{
      {"curve", "ranks", "global batch", "steps", "seconds"}};
  for (std::size_t curve = 0; curve < curves.size(); ++curve)
    for (const ScalingPoint& point : curves[curve].points) {
      if (!point.target) return "";
      const auto [steps, seconds] = target_cells(*point.target);
      rows.push_back({names[curve], std::to_string(point.ranks),
                      std::to_string(point.global_batch_size), steps, seconds});
    }
  return fmt::format("\nTraining until a loss of {}, mean of the repeats, warm-up included\n\n{}",
                     setting(curves.front().config, "target_loss").get<double>(), text_table(rows));
}

std::string table_of_unit(const std::vector<std::string>& names,
                          const std::vector<ScalingCurve>& curves) {
  const auto ratios = curve_ratios(curves.back(), curves.front());
  const bool intervals = !ratios.empty() && ratios.front().ci95;
  const bool launches = curves.front().repeat_unit == RepeatUnit::launch;
  return fmt::format(
      "Curves side by side, {}\n\n{}{}{}", curves.front().unit, throughput_table(names, curves),
      !intervals ? ""
      : launches
          ? "\n[ ]: 95 % interval, Student's t over launches, paired by repeat of the sweep.\n"
          : "\n[ ]: 95 % interval, Student's t over the rounds, paired. The curves ran one "
            "after the other:\na drift of the machine between them is not in it.\n",
      target_table(names, curves));
}

struct OfUnit {
  std::vector<std::string> names;
  std::vector<ScalingCurve> curves;
};

}  // namespace

std::string family_table(const std::vector<std::string>& names,
                         const std::vector<ScalingCurve>& curves) {
  std::map<std::string, OfUnit> units;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    OfUnit& family = units[curves[i].unit];
    family.names.push_back(names[i]);
    family.curves.push_back(curves[i]);
  }
  std::string text;
  for (const auto& [unit, family] : units)
    if (family.curves.size() > 1)
      text += (text.empty() ? "" : "\n") + table_of_unit(family.names, family.curves);
  return text;
}

}  // namespace scalemark
