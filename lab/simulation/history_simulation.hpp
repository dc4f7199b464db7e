// Simulated rows of result sets for `gate --history`: by history_simulation.cpp for docs/gate.md,
// and with fewer rows by lab/tests/history_simulation_test.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "analysis/compare/history.hpp"
#include "lab/simulation/launch_coverage.hpp"

namespace scalemark::history_rows {

using Random = std::mt19937_64;

inline constexpr double kAlpha = 0.01;
inline constexpr std::size_t kLaunches = 5;

/// A row of sets of kLaunches launches each.
struct Row {
  std::size_t sets = 10;
  coverage::LaunchNoise launches;
  double deviation = 0.02;  ///< of a launch
  double between = 0;       ///< that of a set, normal, as a multiple of that of a launch
  std::function<double(std::size_t)> level = [](std::size_t) { return 0.; };  ///< of a set, true
};

/// Normal launches of this deviation.
inline coverage::LaunchNoise normal_launches(double deviation) {
  return {"normal", 0, [deviation](Random& random) {
            return deviation * std::normal_distribution<double>()(random);
          }};
}

/// What find_changes() says of a drawn row, as find_history() asks it.
inline RowFindings draw(const Row& row, Random& random, ChangeTest& test) {
  std::vector<double> levels;
  double squares = 0;
  for (std::size_t set = 0; set < row.sets; ++set) {
    std::vector<double> launches(kLaunches);
    for (double& launch : launches) launch = row.launches.draw(random);
    squares += std::pow(standard_deviation(launches), 2);
    const double own = row.between * row.deviation * std::normal_distribution<double>()(random);
    levels.push_back(row.level(set) + own + mean(launches));
  }
  const double of_level = squares / static_cast<double>(row.sets * kLaunches);
  return find_changes(levels, kAlpha, of_level, test);
}

/// The sets of a drawn row, which has the same level at each of so many points but for the newest
/// set's: `newest` more at the first one.
inline std::vector<ResultSet> draw_sets(const Row& row, int points, double newest, Random& random) {
  std::vector<ResultSet> sets(row.sets);
  for (std::size_t set = 0; set < row.sets; ++set) {
    sets[set].label = std::to_string(set);
    for (int ranks = 1; ranks <= points; ++ranks) {
      const double own = row.between * row.deviation * std::normal_distribution<double>()(random);
      const double more = ranks == 1 && set + 1 == row.sets ? newest : 0;
      for (std::size_t i = 0; i < kLaunches; ++i) {
        MeasuredLaunch launch;
        launch.ranks = ranks;
        launch.keys = {{"kind", "run"}, {"ranks", ranks}};
        launch.unit = "images/sec";
        launch.repeats = {{std::exp(row.level(set) + own + more + row.launches.draw(random)), 1}};
        sets[set].launches.push_back(std::move(launch));
      }
    }
  }
  return sets;
}

/// What is said of the newest set of drawn rows, as shares of them.
struct NewestShares {
  double regressed = 0, passed = 0;
};
inline NewestShares judge_newest(const Row& row, int points, double newest, int rows,
                                 std::uint64_t seed, ChangeTest& test) {
  Random random(seed);
  NewestShares shares;
  for (int i = 0; i < rows; ++i) {
    const std::vector<ResultSet> sets = draw_sets(row, points, newest, random);
    const GateVerdict verdict =
        find_history(sets, match_sets(sets, {}), {.alpha = kAlpha}, test).newest.verdict;
    shares.regressed += (verdict == GateVerdict::regressed ? 1. : 0.) / rows;
    shares.passed += (verdict == GateVerdict::pass ? 1. : 0.) / rows;
  }
  return shares;
}

/// Share of `rows` rows of which `counts`.
inline double share_of(const Row& row, int rows, std::uint64_t seed, ChangeTest& test,
                       const std::function<bool(const RowFindings&)>& counts) {
  Random random(seed);
  int counted = 0;
  for (int i = 0; i < rows; ++i) counted += counts(draw(row, random, test)) ? 1 : 0;
  return static_cast<double>(counted) / rows;
}

inline bool says_anything(const RowFindings& found) {
  return !found.changes.empty() || found.drift.has_value();
}
/// One change alone, a step or one that goes back, from `first` to before `end`.
inline bool says_only(const RowFindings& found, bool goes_back, std::size_t first,
                      std::size_t end) {
  return !found.drift && found.changes.size() == 1 && found.changes[0].goes_back == goes_back &&
         found.changes[0].first == first && found.changes[0].end == end;
}

inline bool says_step(const RowFindings& found, std::size_t first, std::size_t end) {
  return says_only(found, false, first, end);
}
inline bool says_dip(const RowFindings& found, std::size_t first, std::size_t end) {
  return says_only(found, true, first, end);
}

/// A level that differs by `difference` from set `first` to before set `end`.
inline std::function<double(std::size_t)> changed(std::size_t first, std::size_t end,
                                                  double difference) {
  return [=](std::size_t set) { return set >= first && set < end ? difference : 0.; };
}

}  // namespace scalemark::history_rows
