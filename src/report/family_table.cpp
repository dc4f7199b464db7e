// The table at the end of a `scale` with several curves: says what their records say.
#include <fmt/format.h>

#include <map>

#include "analysis/scaling/scaling.hpp"
#include "report/console.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
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
