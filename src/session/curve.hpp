// One scaling curve inside a launch: every round measures every point once, in an order shuffled
// per round, so that a drift of the machine meets all points alike.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/scaling.hpp"
#include "report/noise_summary.hpp"
#include "report/progress.hpp"
#include "session/curve_files.hpp"
#include "session/measured_run.hpp"

namespace scalemark {

class Curve {
 public:
  /// Hands over the record of what was measured so far; rank 0 calls it after every run.
  using Publish = std::function<void(const Json& record)>;

  /// All ranks of the session make and run it together. `config`: of this curve alone; `files`: at
  /// rank 0 with --output, else null. Builds the model.
  Curve(Session& session, LoadedConfig config, CurveFiles* files, Publish publish);

  /// Measures every point; writes the record and prints the table. A run that is interrupted or
  /// invalid ends the curve. The agreed exit code, the same on all ranks.
  ExitCode run();

  const Json& record() const { return record_; }  ///< at rank 0, after run()

 private:
  /// One measured run of the curve.
  struct Segment {
    std::size_t point;
    int round;
    bool baseline;
  };
  /// A point as this rank sees it; the groups are empty where this rank idles.
  struct Point {
    LoadedConfig loaded;  ///< the curve's, or the base's own
    BatchPlan batch;
    std::optional<RunGroup> group, baseline_group;
    PointRuns runs;
  };

  const RunConfig& config() const { return loaded_.config; }
  Point make_point(std::int64_t ranks, std::int64_t base_ranks);
  std::vector<Segment> make_plan() const;
  void announce();
  std::string title(const Segment& segment) const;
  std::string measure(const Segment& segment);
  void await_point(bool takes_part);
  Json measure_here(const Segment& segment, Point& point, RunGroup& group);
  void keep(const Segment& segment, Point& point, const Json& record);
  Json make_record(Status status, const std::string& reason) const;
  void finish(Status status);

  Session& session_;
  LoadedConfig loaded_;
  CurveFiles* files_;
  Publish publish_;
  std::vector<Point> points_;
  std::vector<Segment> plan_;
  std::unique_ptr<Trainer> trainer_;
  std::optional<PlanProgress> progress_;
  NoiseSummary noise_;
  std::size_t done_ = 0;
  Json record_;
};

/// The points of a configuration in a world of this size.
std::vector<std::int64_t> curve_ranks(const RunConfig& config, int world_size);

}  // namespace scalemark
