// The tables at the end of `scale`, of one curve and of several: they say what the records say.
#include <fmt/format.h>

#include <map>
#include <set>

#include "analysis/scaling/scaling.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::string config_text(const Json& record, const char* key) {
  const Json& value = record.at("config").at(key).at("value");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "139.6 [138.1, 141.1]"; only the centre where there is no interval.
template <typename Format>
std::string with_interval(const Json& centre, const Json& interval, Format format) {
  if (centre.is_null()) return kNone;
  const std::string text = format(centre.get<double>());
  if (interval.is_null()) return text;
  return fmt::format("{} [{}, {}]", text, format(interval[0].get<double>()),
                     format(interval[1].get<double>()));
}

/// "12.3 [11.9, 12.7] ms (3.1 %)", "not distinguishable from 0 [-0.1, 0.4] ms". The share of the
/// step is known against a baseline only: 1 - throughput / baseline throughput.
std::string exposed(const Json& point) {
  if (point.at("exposed_seconds").is_null()) return kNone;
  const auto milliseconds = [](double seconds) { return fmt::format("{:.1f}", 1000 * seconds); };
  const Json& bounds = point.at("exposed_ci95");
  if (!bounds.is_null() && bounds[0] <= 0 && bounds[1] >= 0)
    return fmt::format("not distinguishable from 0 [{}, {}] ms", milliseconds(bounds[0]),
                       milliseconds(bounds[1]));
  const std::string text = with_interval(point["exposed_seconds"], bounds, milliseconds) + " ms";
  if (point.at("exposed_method") != "baseline") return text;
  const double share =
      1 - point.at("throughput").get<double>() / point.at("baseline_throughput").get<double>();
  return fmt::format("{} ({:.1f} %)", text, 100 * share);
}

/// Columns that only some curves have.
struct Columns {
  bool solution = false, target = false;
};

Columns columns_of(const Json& record) {
  const Json& point = record.at("points").at(0);
  return {!point.at("time_to_solution_seconds").is_null(), !point.at("target").is_null()};
}

std::vector<std::string> header(const Json& record, const Columns& columns) {
  const std::string resource = record.at("resource");
  std::vector<std::string> titles{"ranks", record.at("unit").get<std::string>(), "speedup",
                                  resource == "rank" ? "efficiency" : "efficiency by " + resource,
                                  "exposed communication"};
  if (columns.solution) {
    titles.insert(titles.begin() + 1, "batch");
    titles.insert(titles.end(), {"time to solution", "its speedup (efficiency)"});
  }
  if (columns.target)
    for (const char* what : {"steps to ", "seconds to "})
      titles.push_back(what + config_text(record, "target_loss"));
  return titles;
}

std::string two_decimals(double value) { return fmt::format("{:.2f}", value); }

/// "3.98 [3.90, 4.06] (99.5 %)".
std::string solution_speedup(const Json& point) {
  const std::string text = with_interval(point.at("time_to_solution_speedup"),
                                         point.at("time_to_solution_speedup_ci95"), two_decimals);
  const Json& efficiency = point.at("time_to_solution_efficiency");
  if (efficiency.is_null()) return text;
  return fmt::format("{} ({:.1f} %)", text, 100 * efficiency.get<double>());
}

std::vector<std::string> row(const Json& point, const Columns& columns) {
  const double rate = point.at("throughput");
  std::vector<std::string> cells{
      point.at("ranks").dump(),
      with_interval(point.at("throughput"), point.at("ci95"),
                    [rate](double v) { return four_digits(v, rate); }),
      with_interval(point.at("speedup"), point.at("speedup_ci95"), two_decimals),
      with_interval(point.at("efficiency"), point.at("efficiency_ci95"),
                    [](double v) { return fmt::format("{:.1f} %", 100 * v); }),
      exposed(point)};
  if (columns.solution) {
    cells.insert(cells.begin() + 1, point.at("batch_size_per_rank").dump());
    cells.push_back(four_digits(point.at("time_to_solution_seconds").get<double>()) + " s");
    cells.push_back(solution_speedup(point));
  }
  if (columns.target) {
    const Json& target = point.at("target");
    const bool reached = target.at("reached");
    cells.push_back(reached ? fmt::format("{:.0f}", target["steps"].get<double>()) : kNone);
    cells.push_back(reached ? four_digits(target["seconds"].get<double>()) : "not reached");
  }
  return cells;
}

long repeats_of(const Json& point) {
  long count = 0;
  for (const Json& repeat : point.at("repeats"))
    if (!repeat.at("baseline").get<bool>()) ++count;
  return count;
}

std::string interval_note(const Json& record) {
  std::set<long> numbers;
  for (const Json& point : record.at("points")) numbers.insert(repeats_of(point));
  const bool in_process = record.at("repeat_unit") == "in_process";
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

std::string solution_note(const Json& record, const Columns& columns) {
  if (!columns.solution) return "";
  const std::string steps = config_text(record, "solution_steps");
  const Json& base = record.at("config").at("base_solution_steps").at("value");
  return fmt::format(
      "Batch: samples of a rank. Time to solution: {} steps of the mean step{}; its speedup is "
      "that of these times.\n",
      steps, base.is_null() ? "" : fmt::format(" ({} of the base)", base.dump()));
}

std::string dip_note(const Json& record) {
  std::string text;
  for (const Json& point : record.at("points")) {
    const Json& trend = point.at("trend");
    if (trend.is_null() || !trend.at("dip").get<bool>()) continue;
    text += fmt::format(
        "dip: {} ranks reach {:.1f} % where the points beside them let expect {:.1f} %\n",
        point.at("ranks").dump(), 100 * point.at("efficiency").get<double>(),
        100 * trend.at("expected_efficiency").get<double>());
  }
  return text;
}

std::string exposed_note(const Json& record) {
  bool baseline = false, wait = false;
  for (const Json& point : record.at("points")) {
    baseline = baseline || point.at("exposed_method") == "baseline";
    wait = wait || point.at("exposed_method") == "wait";
  }
  if (baseline)
    return "Exposed communication: mean step minus that of the same ranks without communication "
           "(share of the step).\n";
  if (wait)
    return "Exposed communication: waiting time per step, mean over ranks; no baseline was "
           "measured.\n";
  return "";
}

/// On a terminal alone, whose width is known.
std::string speedup_plot(const Json& record) {
  constexpr std::size_t kFewest = 2, kMost = 40;
  const auto columns = output_columns();
  const Json& points = record.at("points");
  if (!columns || points.size() < kFewest || points.size() > kMost) return "";
  std::vector<Bar> plot;
  for (const Json& point : points) {
    const Json &speedup = point.at("speedup"), &efficiency = point.at("efficiency");
    if (!speedup.is_number() || !efficiency.is_number() || efficiency <= 0) return "";
    const double ideal = speedup.get<double>() / efficiency.get<double>();
    plot.push_back({point.at("ranks").dump(), speedup, ideal,
                    fmt::format("{:.2f} of {:g}", speedup.get<double>(), ideal)});
  }
  return "ranks and speedup, of the ideal\n" + bars(plot, *columns, writes_utf8()) + "\n";
}

/// Why the curve falls short, or that it does not.
std::string finding_section(const Json& record) {
  const std::string lines = finding_lines(record);
  return lines.empty() ? "" : "\n" + lines;
}

}  // namespace

std::string scaling_table(const Json& record, std::size_t told) {
  std::string title =
      fmt::format("{} scaling of {}, {}", record.at("scaling") == "weak" ? "Weak" : "Strong",
                  config_text(record, "model"), config_text(record, "precision")) +
      kernels_words(record);
  const Json settings = record.value("settings", Json());
  for (const auto& [name, value] : settings.items())
    if (name != "model" && name != "precision" && name != "global_batch_size" && name != "kernels")
      title += fmt::format(", {} {}", shown(name),
                           shown(value.is_string() ? value.get<std::string>() : value.dump()));
  if (!record.at("config").at("global_batch_size").at("value").is_null())
    title += ", global batch " + config_text(record, "global_batch_size");
  if (record.at("status") != "ok")
    return fmt::format("{}: no table, the curve is {}: {}\n", title,
                       record["status"].get<std::string>(), record.at("reason").get<std::string>());

  const Columns columns = columns_of(record);
  std::vector<std::vector<std::string>> rows{header(record, columns)};
  for (const Json& point : record.at("points")) rows.push_back(row(point, columns));
  return title + "\n\n" + text_table(rows) + "\n" + speedup_plot(record) + dip_note(record) +
         interval_note(record) + exposed_note(record) + solution_note(record, columns) +
         warning_lines(record, told) + finding_section(record);
}

namespace {

std::string ratio_text(const CurveRatio& ratio) {
  if (!ratio.ci95) return fmt::format("{:.3f}", ratio.ratio);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.ratio, ratio.ci95->lo, ratio.ci95->hi);
}

/// A line a rank count: the throughput of every curve, then its ratio to the first one's.
std::string throughput_table(const std::vector<std::string>& names,
                             const std::vector<Json>& records) {
  std::vector<std::string> header{"ranks"};
  std::map<int, std::vector<std::string>> rows;  // [ranks]: a cell a column, where there is one
  const auto add_column = [&](const std::string& title) {
    header.push_back(title);
    for (auto& [ranks, cells] : rows) cells.resize(header.size(), kNone);
  };
  for (const Json& record : records)
    for (const Json& point : record.at("points"))
      rows[point.at("ranks").get<int>()] = {point.at("ranks").dump()};
  for (std::size_t curve = 0; curve < records.size(); ++curve) {
    add_column(names[curve]);
    for (const Json& point : records[curve].at("points"))
      rows[point.at("ranks").get<int>()].back() = four_digits(point.at("throughput").get<double>());
  }
  for (std::size_t curve = 1; curve < records.size(); ++curve) {
    add_column(fmt::format("{} over {}", names[curve], names.front()));
    for (const CurveRatio& ratio : curve_ratios(records[curve], records.front()))
      rows[ratio.ranks].back() = ratio_text(ratio);
  }
  std::vector<std::vector<std::string>> table{header};
  for (auto& [ranks, cells] : rows) table.push_back(std::move(cells));
  return text_table(table);
}

/// Steps and seconds to the target loss; empty where none was asked for.
std::string target_table(const std::vector<std::string>& names, const std::vector<Json>& records) {
  std::vector<std::vector<std::string>> rows{
      {"curve", "ranks", "global batch", "steps", "seconds"}};
  for (std::size_t curve = 0; curve < records.size(); ++curve)
    for (const Json& point : records[curve].at("points")) {
      const Json& target = point.at("target");
      if (target.is_null()) return "";
      const bool reached = target.at("reached");
      rows.push_back({names[curve], point.at("ranks").dump(), point.at("global_batch_size").dump(),
                      reached ? fmt::format("{:.0f}", target.at("steps").get<double>()) : "-",
                      reached ? four_digits(target.at("seconds").get<double>()) : "not reached"});
    }
  const Json& loss = records.front().at("config").at("target_loss").at("value");
  return fmt::format("\nTraining until a loss of {}, mean of the repeats, warm-up included\n\n{}",
                     loss.get<double>(), text_table(rows));
}

std::string table_of_unit(const std::vector<std::string>& names, const std::vector<Json>& records) {
  const auto ratios = curve_ratios(records.back(), records.front());
  const bool intervals = !ratios.empty() && ratios.front().ci95;
  const bool launches = records.front().at("repeat_unit") == "launch";
  return fmt::format(
      "Curves side by side, {}\n\n{}{}{}", records.front().at("unit").get<std::string>(),
      throughput_table(names, records),
      !intervals ? ""
      : launches
          ? "\n[ ]: 95 % interval, Student's t over launches, paired by repeat of the sweep.\n"
          : "\n[ ]: 95 % interval, Student's t over the rounds, paired. The curves ran one "
            "after the other:\na drift of the machine between them is not in it.\n",
      target_table(names, records));
}

struct OfUnit {
  std::vector<std::string> names;
  std::vector<Json> records;
};

}  // namespace

std::string family_table(const std::vector<std::string>& names, const std::vector<Json>& records) {
  std::map<std::string, OfUnit> units;
  for (std::size_t i = 0; i < records.size(); ++i) {
    OfUnit& family = units[records[i].at("unit").get<std::string>()];
    family.names.push_back(names[i]);
    family.records.push_back(records[i]);
  }
  std::string text;
  for (const auto& [unit, family] : units)
    if (family.records.size() > 1)
      text += (text.empty() ? "" : "\n") + table_of_unit(family.names, family.records);
  return text;
}

}  // namespace scalemark
