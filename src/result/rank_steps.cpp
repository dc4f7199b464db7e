// rank_steps: the own time of every rank over the run, bounded in size.
#include <algorithm>
#include <cmath>

#include "result/run_metrics.hpp"

namespace scalemark {
namespace {

/// Of a rank, and of all ranks together: some 400 kB of text at most.
constexpr std::size_t kMostCells = 200, kMostCellsOfAll = 20'000, kFewestCells = 10;

/// Means of local step less wait over `width` consecutive steps; the last may hold fewer.
std::vector<double> own_seconds(const Samples& samples, std::size_t steps, std::size_t width) {
  std::vector<double> cells;
  for (std::size_t begin = 0; begin < steps; begin += width) {
    const std::size_t end = std::min(steps, begin + width);
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += samples.step_seconds[i] - samples.wait_seconds[i];
    cells.push_back(sum / static_cast<double>(end - begin));
  }
  return cells;
}

}  // namespace

void fill_rank_steps(Json& record, const std::vector<RankReport>& reports) {
  std::size_t steps = reports.empty() ? 0 : reports.front().samples.step_seconds.size();
  bool told = true;
  for (const RankReport& report : reports) {
    steps = std::min(steps, report.samples.step_seconds.size());
    told = told && report.samples.wait_seconds.size() >= steps;
  }
  if (steps == 0) return set_unavailable(record, "rank_steps", "no step was completed");
  const std::size_t most = std::clamp(kMostCellsOfAll / reports.size(), kFewestCells, kMostCells);
  const std::size_t width = (steps + most - 1) / most;
  Json seconds = Json::array();
  for (const RankReport& report : reports) {
    const auto cells = told ? own_seconds(report.samples, steps, width) : std::vector<double>{};
    told = told && std::ranges::all_of(cells, [](double cell) { return std::isfinite(cell); });
    seconds.push_back(cells);
  }
  if (!told)
    return set_unavailable(
        record, "rank_steps",
        "the reducer does not tell how long the device waited for communication");
  record["rank_steps"] = {{"steps_per_cell", width}, {"compute_seconds", std::move(seconds)}};
}

}  // namespace scalemark
