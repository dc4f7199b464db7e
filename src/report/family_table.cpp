// The table at the end of a `scale` with several curves: says what their records say.
#include <fmt/format.h>

#include "analysis/scaling/curve_ratio.hpp"
#include "report/console.hpp"
#include "report/text_table.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

std::string ratio_text(const CurveRatio& ratio) {
  if (!ratio.ci95) return fmt::format("{:.3f}", ratio.ratio);
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.ratio, ratio.ci95->lo, ratio.ci95->hi);
}

/// A line a rank count: the throughput of every curve, then its ratio to the first one's.
std::string throughput_table(const std::vector<std::string>& names,
                             const std::vector<Json>& records) {
  std::vector<std::vector<std::string>> rows{{"ranks"}};
  for (const std::string& name : names) rows.front().push_back(name);
  const Json& points = records.front().at("points");
  for (const Json& point : points) rows.push_back({point.at("ranks").dump()});
  for (const Json& record : records)
    for (std::size_t i = 0; i < points.size(); ++i)
      rows[i + 1].push_back(four_digits(record.at("points").at(i).at("throughput").get<double>()));
  for (std::size_t curve = 1; curve < records.size(); ++curve) {
    rows.front().push_back(fmt::format("{} over {}", names[curve], names.front()));
    const auto ratios = curve_ratios(records[curve], records.front());
    for (std::size_t i = 0; i < points.size(); ++i) rows[i + 1].push_back(ratio_text(ratios.at(i)));
  }
  return text_table(rows);
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

}  // namespace

std::string family_table(const std::vector<std::string>& names, const std::vector<Json>& records) {
  const auto ratios = curve_ratios(records.back(), records.front());
  const bool intervals = !ratios.empty() && ratios.front().ci95;
  return fmt::format(
      "Curves side by side, {}\n\n{}{}{}", records.front().at("unit").get<std::string>(),
      throughput_table(names, records),
      intervals ? "\n[ ]: 95 % interval, Student's t over the rounds, paired. The curves ran one "
                  "after the other:\na drift of the machine between them is not in it.\n"
                : "",
      target_table(names, records));
}

}  // namespace scalemark
