// See sweep_table.hpp.
#include "report/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "measure/statistics.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

/// Over the standard point; nullopt where one of the two has no throughput of the same unit.
std::optional<double> factor(const SweepResult& result, const SweepResult& standard) {
  if (result.throughputs.empty() || standard.throughputs.empty() || result.unit != standard.unit)
    return std::nullopt;
  return mean(result.throughputs) / mean(standard.throughputs);
}

std::string best_line(const std::vector<SweepResult>& results, const SweepResult& standard) {
  const SweepResult* best = nullptr;
  for (const SweepResult& result : results)
    if (factor(result, standard) && (!best || mean(result.throughputs) > mean(best->throughputs)))
      best = &result;
  if (!best) return "";
  return fmt::format("fastest: {}, {:.3f} x {}\n", shown(best->title), *factor(*best, standard),
                     shown(standard.title));
}

}  // namespace

void SweepProgress::start(const std::string& title, std::int64_t repeat) {
  std::string left;
  if (finished_ > 0)
    left =
        fmt::format(", about {} left", format_duration(seconds_ / static_cast<double>(finished_) *
                                                       static_cast<double>(launches_ - finished_)));
  say(fmt::format("[{}/{}] {}, repeat {}{}", finished_ + 1, launches_, shown(title), repeat, left));
}

void SweepProgress::finish(double seconds, const std::string& outcome) {
  ++finished_;
  seconds_ += seconds;
  say(fmt::format("    {} ({})", shown(outcome), format_duration(seconds)));
}

std::string sweep_table(const std::vector<SweepResult>& results,
                        std::optional<std::size_t> standard) {
  std::vector<std::vector<std::string>> rows{
      {"point", "launches", "failed", "mean", "smallest", "largest", "unit"}};
  if (standard) rows.front().push_back("x default");
  for (const SweepResult& result : results) {
    const auto& rates = result.throughputs;
    std::vector<std::string> row{shown(result.title), std::to_string(rates.size()),
                                 std::to_string(result.failed)};
    if (rates.empty()) {
      row.insert(row.end(), {"-", "-", "-", "-"});
    } else {
      const double centre = mean(rates);
      row.push_back(four_digits(centre));
      row.push_back(four_digits(std::ranges::min(rates), centre));
      row.push_back(four_digits(std::ranges::max(rates), centre));
      row.push_back(result.unit);
    }
    if (standard) {
      const auto over = factor(result, results[*standard]);
      row.push_back(over ? fmt::format("{:.3f}", *over) : "-");
    }
    rows.push_back(std::move(row));
  }
  return text_table(rows) + (standard ? best_line(results, results[*standard]) : "");
}

}  // namespace scalemark
