// Measures one scaling curve inside a launch. Every round measures every point once, in an order
// shuffled per round, so that a drift of the machine affects all points alike.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis/evidence.hpp"
#include "analysis/scaling/scaling.hpp"
#include "config/curves.hpp"
#include "report/console.hpp"
#include "session/curve_files.hpp"
#include "session/measured_run.hpp"
#include "session/trace_pass.hpp"

namespace scalemark {

class Curve {
 public:
  /// Publishes the record of what was measured so far. Rank 0 calls it after every run.
  using Publish = std::function<void(const ScalingCurve& record)>;

  /// Builds the model. All ranks of the session make the curve and run it together. `config` is
  /// that of this curve alone. `files` is null on all ranks but 0, and at rank 0 without --output.
  /// `trace` traces the last run of the largest point.
  Curve(Session& session, MeasuredConfig config, CurveFiles* files, TracePass& trace,
        Publish publish);

  /// Measures every point, writes the record and prints the table. A run that is interrupted or
  /// invalid ends the curve. Returns the agreed exit code, which is the same on all ranks.
  ExitCode run();

  /// Returns the agreed exit code of --trace. A curve without its trace is complete all the same.
  ExitCode traced() const { return traced_; }
  const ScalingCurve& record() const { return record_; }  ///< at rank 0, after run()

 private:
  /// Holds a point as this rank sees it. The groups are empty where this rank idles.
  struct Point {
    BatchPlan batch;
    std::optional<RunGroup> group, baseline_group;
    std::map<LeaveOut, RunGroup> without;
    RunGroup* group_of(const CurveSegment& segment);
    PointRuns runs;
  };

  const ResolvedConfig& config() const { return measured_.config(); }
  void resume();
  Point make_point(std::int64_t ranks, std::int64_t base_ranks);
  void announce();
  std::string title(const CurveSegment& segment) const;
  Status measure(const CurveSegment& segment);
  void await_point(bool takes_part);
  void make_trainer(RankGroup& ranks, const BatchPlan& batch);
  std::optional<RunResult> measure_here(const CurveSegment& segment, Point& point, RunGroup& group);
  void trace(const CurveSegment& segment, std::optional<RunResult>& run);
  void keep(const CurveSegment& segment, Point& point, const RunResult& run);
  void take(const CurveSegment& segment, const RunResult& run, const std::string& path);
  ScalingCurve make_record(const Outcome& outcome) const;
  void publish_so_far();
  void finish(Status status);

  Session& session_;
  MeasuredConfig measured_;
  CurveFiles* files_;
  TracePass& trace_;
  ExitCode traced_ = ExitCode::ok;
  Publish publish_;
  std::vector<Point> points_;
  std::vector<CurveSegment> plan_;  ///< of what is left to measure
  std::unique_ptr<Trainer> trainer_;
  int trainer_ranks_ = 0;  ///< that made it
  std::optional<PlanProgress> progress_;
  NoiseSummary noise_;
  std::vector<diagnosis::RunEvidence> evidence_;  ///< of runs with communication, at rank 0
  /// How many runs of the whole curve are done, and how many it consists of.
  std::size_t done_ = 0, runs_ = 0;
  /// How many rounds an earlier command measured.
  int kept_rounds_ = 0;
  ScalingCurve record_;
};

/// Returns the sizes, in ranks, of the points of a configuration in a world of `world_size` ranks.
std::vector<std::int64_t> curve_ranks(const ResolvedConfig& config, int world_size);

}  // namespace scalemark
