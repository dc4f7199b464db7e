// Where a row of result sets, one a commit, changed its level, which is advice, and whether the
// newest set is slower than the level that it would continue, which is a verdict. Pure functions;
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
/// What is told of the sets that a change needs.
inline constexpr double kAskedPercent[] = {1, 2, 5, 10};
inline constexpr double kHistoryPower = 0.8;

/// What a history is asked.
struct HistoryRules {
  double alpha = 0.01;              ///< of false alarms: of changes, and again of the newest set
  double pass_alpha = 0.05;         ///< of a pass of a newest set that lost what a pass excludes
  double threshold = 0.01;          ///< least slowdown that is called a regression (fraction)
  double excluded = 0.02;           ///< mean slowdown that a pass excludes (fraction)
  double excluded_point = 0.10;     ///< slowdown of any one point that a pass excludes (fraction)
  double power = 0.8;               ///< of the detectable slowdown
  std::size_t allowed_to_fail = 0;  ///< launches of the newest set
};

/// The values of a row of sets, one a set: of a point, or of the mean over points.
struct LevelRow {
  std::vector<double> values;  ///< mean log rate
  std::vector<double> noise;   ///< variance of each from its launches; 0 where they do not tell it
  double median = 0;           ///< as the last value, of the medians of its launches
};

/// The last value of a row against the level that it would continue.
struct Continued {
  double difference = 0, error = 0;  ///< of the last value from the level, and its standard error
  double freedom = 1;                ///< of the error: Student's t
  double deviation = 0;              ///< of a value around its level or the line of a drift
  double median_difference = 0;      ///< of the median of the launches
  std::size_t first = 0;             ///< index of the first value of the level
  std::vector<std::size_t> odd;      ///< values alone far off their level, which are not used
  bool drift = false;                ///< the level is a line

  double slower_p() const;
  /// One-sided, of a loss of `slowdown` (fraction) or more.
  double excluded_p(double slowdown) const;
};

/// nullopt where fewer than three values are left to compare the last one with.
std::optional<Continued> continue_row(const LevelRow& row, double alpha, ChangeTest& test);

/// A change at one point that the mean over the points does not show at the same place.
struct PointChange {
  std::size_t point = 0;          ///< of the matching
  std::vector<std::size_t> sets;  ///< that have it: what first and end count
  LevelChange change;
};

struct History {
  std::vector<double> levels;  ///< of each set: mean over common points of the mean log rate
  std::vector<double> rates;   ///< geometric mean over these points, relative to the first set
  RowFindings found;
  std::size_t points = 0;  ///< that all sets have
  /// Standard error of a set's level from its launches alone; nullopt where no set has two launches
  /// of a point.
  std::optional<double> launch_noise;
  std::vector<PointChange> point_changes;
  record::NewestSet newest;
  std::vector<std::string> warnings;
  double smallest_step = 0;  ///< in the middle of as many sets, found with kHistoryPower
  std::vector<record::SetsNeeded> needed;
};

/// ConfigError below kLeastSets sets or where no point is common to all. `test` keeps what it has
/// drawn for the next row.
History find_history(const std::vector<ResultSet>& sets, const Matching& matching,
                     const HistoryRules& rules, ChangeTest& test);

/// The record.
HistoryResult make_history(const std::vector<ResultSet>& sets, const Matching& matching,
                           const History& history, double alpha,
                           const std::vector<std::string>& notes,
                           const std::vector<std::string>& warnings);

}  // namespace scalemark
