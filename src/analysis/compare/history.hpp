// Where a row of result sets, one a commit, changed its level: advice, no verdict. Pure functions;
// docs/gate.md ("History").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"
#include "measure/trend.hpp"
#include "record/comparison.hpp"

namespace scalemark {

/// Fewer sets show no change: two levels of two sets each can't be told from sets that differ.
inline constexpr std::size_t kLeastSets = 6;
/// Sets of a level that goes back where it came from; a longer one is a step and another.
inline constexpr std::size_t kMostDip = 4;
/// What is told of the sets that a change needs.
inline constexpr double kAskedPercent[] = {1, 2, 5, 10};
inline constexpr double kHistoryPower = 0.8;

struct LevelChange {
  ChangeKind kind = ChangeKind::step;
  std::size_t first = 0;  ///< index of the first value of the new level
  std::size_t end = 0;    ///< behind its last
  double difference = 0;  ///< from the level before; of a dip or peak from those around it
  double p = 1;           ///< ChangeTest of its values and those around it
};

struct Drift {
  double difference = 0;  ///< from the first value to the last: Sen's slope
  double p = 1;           ///< Mann-Kendall
};

struct RowFindings {
  std::vector<LevelChange> changes;  ///< ascending
  std::optional<Drift> drift;        ///< then there are no changes: a line fits better than steps
  double deviation = 0;              ///< of a value around its level or the line
};

/// Of normal values without change or drift at most `alpha` have any: half of it for changes
/// (find_levels()), half for a drift. `least_variance`: of a value, as of ChangeTest.
RowFindings find_changes(std::span<const double> values, double alpha, double least_variance,
                         ChangeTest& test);

struct History {
  std::vector<double> levels;  ///< of each set: mean over common points of the mean log rate
  std::vector<double> rates;   ///< geometric mean over these points, relative to the first set
  RowFindings found;
  std::size_t points = 0;  ///< that all sets have
  /// Standard error of a set's level from its launches alone; nullopt where no set has two launches
  /// of a point.
  std::optional<double> launch_noise;
  double smallest_step = 0;  ///< in the middle of as many sets, found with kHistoryPower
  std::vector<record::SetsNeeded> needed;
};

/// ConfigError below kLeastSets sets or where no point is common to all.
History find_history(const std::vector<ResultSet>& sets, const Matching& matching, double alpha);

/// The record.
HistoryResult make_history(const std::vector<ResultSet>& sets, const History& history, double alpha,
                           const std::vector<std::string>& notes,
                           const std::vector<std::string>& warnings);

}  // namespace scalemark
