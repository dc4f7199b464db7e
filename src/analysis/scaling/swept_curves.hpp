// Curves out of a sweep, whose repeats are fresh launches: which launches make one, and its record.
// Pure functions of what the journal and the records say.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/scaling/scaling.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {

/// A launch of a sweep that has succeeded.
struct SweptRun {
  JournalEntry entry;
  std::filesystem::path path;  ///< of its record
  RunResult record;            ///< without the times of its steps
  PointRepeat repeat;
  int ranks = 1;
  Json communicator;                   ///< as it was asked for
  LeaveOut left_out = LeaveOut::none;  ///< of the collectives of --shard
  std::map<std::string, Json> same;    ///< of which a curve has one value each
  std::map<std::string, Json> placed;  ///< that may change with the ranks: kPlaced, a curve has one
                                       ///< value of each at a rank count
  std::map<std::string, Json> achieved;  ///< hosts, transport
};

/// Throws ConfigError where the record is of no training, ResultError where it is not as its schema
/// says.
SweptRun swept_run(const JournalEntry& entry, const Json& record, const std::filesystem::path& path,
                   Resource resource);

struct SweptCurve {
  std::string name;  ///< what it differs by from the others, fit for a file name; empty: alone
  Json settings;     ///< of the sweep, that all its points have
  /// With communication, and without it or one collective, by ranks.
  std::vector<const SweptRun*> runs, baselines;
  std::set<int> ranks() const;
};

struct SweptCurves {
  std::vector<SweptCurve> curves;     ///< of two rank counts and more
  std::vector<std::string> left_out;  ///< sentences: which launches make no curve, and why
};

/// Launches that differ in their ranks alone, and in what may follow from these, are one curve;
/// those with communicator none, or without one collective, its baselines. Other builds, other
/// settings, weak and strong make other curves. In the order of their first launches; the result
/// points into `runs`.
SweptCurves swept_curves(const std::vector<SweptRun>& runs);

/// The record of a curve. `asked`: resource, steps to solution, output.
ScalingCurve make_swept_record(const SweptCurve& curve, const ResolvedConfig& asked);

/// Launches of a point that the sweep has not got.
struct MissingLaunches {
  Json settings;
  std::string revision;
  std::string words;  ///< "ranks=4: repeat 1 failed (...), repeats 2, 3 not measured yet"
  int failed = 0;     ///< of them; the others were not measured
};

/// What was planned and did not succeed; without a plan, what other points of the same build have.
/// `last`: last_entries().
std::vector<MissingLaunches> missing_launches(const std::vector<JournalEntry>& last,
                                              const std::optional<PlannedLaunches>& planned);

/// Whether they are of this curve's settings and build.
bool belongs_to(const MissingLaunches& missing, const SweptCurve& curve);

}  // namespace scalemark
