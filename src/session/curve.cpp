// Measures the points of one scaling curve in rounds, and keeps what was measured.
#include "session/curve.hpp"

#include <fmt/format.h>

#include <exception>
#include <limits>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/scaling/scaling.hpp"
#include "config/curves.hpp"
#include "platform/platform.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "report/console.hpp"
#include "result/warnings.hpp"
#include "session/announce.hpp"
#include "session/commands.hpp"
#include "session/step_printer.hpp"
#include "streams.hpp"

namespace scalemark {

std::vector<std::int64_t> curve_ranks(const ResolvedConfig& config, int world_size) {
  return config.ranks.empty() ? default_ranks(world_size, config.ranks_per_node) : config.ranks;
}

Curve::Curve(Session& session, MeasuredConfig measured, CurveFiles* files, TracePass& trace,
             Publish publish)
    : session_(session),
      measured_(std::move(measured)),
      files_(files),
      trace_(trace),
      publish_(std::move(publish)) {
  const auto ranks = curve_ranks(config(), session.world.size());
  for (const std::int64_t n : ranks) points_.push_back(make_point(n, ranks.front()));
  plan_ = curve_segments(config(), ranks);
  runs_ = plan_.size();
  resume();
  make_trainer(session.world, points_.back().batch);
}

/// Makes the model that the following points train, where none is left. All of `ranks` call it.
void Curve::make_trainer(RankGroup& ranks, const BatchPlan& batch) {
  if (trainer_) return;
  session_.world.watchdog().enter("model");
  trainer_ = std::make_unique<Trainer>(config(), *session_.device, ranks, batch);
  trainer_ranks_ = ranks.size();
  trainer_->keep_initial_weights();
}

ExitCode Curve::run() {
  announce();
  for (const CurveSegment& segment : plan_) {
    const Status status = measure(segment);
    if (status == Status::ok) continue;
    finish(status);
    return exit_code_of(status);
  }
  finish(Status::ok);
  return ExitCode::ok;
}

/// Takes over the whole rounds that an earlier command with this output measured on these hosts,
/// by this build and with this configuration, before it was ended.
void Curve::resume() {
  const auto& hosts = session_.hosts;
  session_.agree_on_files([&] {
    if (!files_) return;
    std::vector<std::int64_t> ranks;
    for (const Point& point : points_) ranks.push_back(point.runs.ranks);
    const ScalingCurve now = make_record({Status::failed, "not measured yet"});
    bool other_origins = false;
    const auto same = [&](const RunResult& run, const CurveSegment& segment) {
      const std::int64_t n = ranks[segment.point];
      ResolvedConfig point = point_config(config(), n, ranks.front());
      bool there = run.ranks.size() == static_cast<std::size_t>(n);
      for (std::size_t i = 0; there && i < run.ranks.size(); ++i)
        there = run.ranks[i].host == hosts[i];
      if (segment.leave_out != LeaveOut::none) point.leave_out = segment.leave_out;
      if (!there || run.config_hash != config_hash(point, static_cast<int>(n))) return false;
      const bool alike = Origins{run.build, run.system, run.environment} ==
                         Origins{now.build, *now.system, *now.environment};
      other_origins = other_origins || !alike;
      return alike;
    };
    for (const KeptRun& run : files_->unfinished(plan_, ranks, same)) {
      take(run.segment, run.record, run.path);
      kept_rounds_ = run.segment.round + 1;
    }
    if (kept_rounds_ > 0)
      session_.say(fmt::format(
          "going on after {} of {} rounds that an earlier command measured; to begin anew, remove "
          "{}",
          kept_rounds_, config().repeats, files_->runs_folder().string()));
    if (other_origins)
      session_.say(
          "what an earlier command measured with another build, on another machine or under other "
          "variables is measured again");
  });
  kept_rounds_ = std::stoi(session_.world.broadcast(std::to_string(kept_rounds_)));
  std::erase_if(plan_, [&](const CurveSegment& s) { return s.round < kept_rounds_; });
}

Curve::Point Curve::make_point(std::int64_t ranks, std::int64_t base_ranks) {
  Point point;
  // The base may have a configuration of its own.
  const MeasuredConfig measured{point_config(measured_.loaded, ranks, base_ranks),
                                measured_.batch_search};
  point.batch = plan_batch(measured.config(), ranks);
  point.runs.ranks = static_cast<int>(ranks);
  auto group = session_.world.split(session_.world.rank() < ranks ? 0 : -1);
  if (!group) return point;
  if (ranks > 1) point.baseline_group = make_run_group(session_, *group, measured, true);
  point.group = make_run_group(session_, std::move(*group), measured, false);
  for (const LeaveOut part : left_out_in_turn(config(), ranks))
    point.without.emplace(part, without(*point.group, part));
  return point;
}

/// Returns the group of a run of the point, or null where this rank idles.
RunGroup* Curve::Point::group_of(const CurveSegment& segment) {
  if (!group) return nullptr;
  if (segment.baseline) return &*baseline_group;
  return segment.leave_out == LeaveOut::none ? &*group : &without.at(segment.leave_out);
}

/// Says what will be done and how long it takes. The time is estimated from a step with the batch
/// of the largest point, run by all ranks at once, which is the slowest case.
void Curve::announce() {
  std::vector<int> ranks;
  for (const Point& point : points_) ranks.push_back(point.runs.ranks);
  announce_run(session_, config(), points_.back().batch, ranks);
  session_.world.watchdog().enter("calibration");
  const double sample_seconds = trainer_->calibrate(session_.world) /
                                static_cast<double>(points_.back().batch.batch_size_per_rank);
  std::vector<PlannedSegment> planned;
  for (const CurveSegment& segment : plan_) {
    const double step =
        sample_seconds * static_cast<double>(points_[segment.point].batch.batch_size_per_rank);
    planned.push_back({title(segment), expected_seconds(config(), step)});
  }
  if (!session_.is_root()) return;
  publish_so_far();
  progress_.emplace(std::move(planned));
}

std::string Curve::title(const CurveSegment& segment) const {
  const int ranks = points_[segment.point].runs.ranks;
  const std::string without = segment.baseline ? " without communication"
                              : segment.leave_out != LeaveOut::none
                                  ? " without " + to_string(segment.leave_out)
                                  : "";
  return fmt::format("round {}/{}, {} rank{}{}", segment.round + 1, config().repeats, ranks,
                     ranks == 1 ? "" : "s", without);
}

/// Measures one run of a point. All ranks of the world call it, and those outside the point sleep
/// until it is done. Returns the status that the ranks have agreed on.
Status Curve::measure(const CurveSegment& segment) {
  Point& point = points_[segment.point];
  RunGroup* const group = point.group_of(segment);
  std::optional<RunResult> run;
  ExitCode code = ExitCode::ok;
  std::string message;
  // Weights that are divided among ranks are those of one number of ranks. Idle ranks drop theirs,
  // too: later points need all of their ranks to make new ones.
  if (config().shard != Shard::none && trainer_ranks_ != point.runs.ranks) trainer_.reset();
  if (group) {
    try {
      run = measure_here(segment, point, *group);
    } catch (const AgreedError& error) {
      code = error.code();
      message = error.what();
    }
  }
  await_point(group != nullptr);
  session_.world.agree(code, message);
  session_.agree_on_files([&] {
    if (session_.is_root()) keep(segment, point, *run);
  });
  trace(segment, run);
  const std::string status = run && session_.is_root() ? to_string(run->status) : "";
  return status_from(session_.world.broadcast(status));
}

/// Idle ranks wait without a deadline, since those that measure watch themselves.
void Curve::await_point(bool takes_part) {
  Watchdog& watchdog = session_.world.watchdog();
  const double timeout = watchdog.timeout();
  if (!takes_part) watchdog.set_timeout(std::numeric_limits<double>::infinity());
  session_.world.barrier();
  watchdog.set_timeout(timeout);
}

/// Runs the trace pass after the last run of the largest point, whose record is kept by then.
void Curve::trace(const CurveSegment& segment, std::optional<RunResult>& run) {
  const bool last = segment.round + 1 == config().repeats && segment.is_whole() &&
                    segment.point + 1 == points_.size();
  if (!trace_.wanted() || !last) return;
  Point& point = points_.back();
  ExitCode code = ExitCode::ok;
  if (point.group) {
    code = trace_.add_to(run, point.group->ranks, [&](std::int64_t steps, StepTrace& to) {
      return trainer_->trace(point.group->ranks, *point.group->communicator, steps, to);
    });
  }
  await_point(point.group.has_value());
  traced_ = static_cast<ExitCode>(
      std::stoi(session_.world.broadcast(std::to_string(static_cast<int>(code)))));
  session_.agree_on_files([&] {
    if (!session_.is_root()) return;
    if (files_) files_->write_run(*run, segment, point.runs.ranks);
    session_.say(run->trace ? trace_summary(*run) : "no trace: " + run->trace.why());
  });
}

std::optional<RunResult> Curve::measure_here(const CurveSegment& segment, Point& point,
                                             RunGroup& group) {
  std::optional<BaselineRate> baseline;
  if (!segment.baseline && !point.runs.baselines.empty()) {
    const PointRepeat& last = point.runs.baselines.back();
    baseline = BaselineRate{last.rate(), last.step_seconds_mean};
  }
  if (progress_) progress_->start();
  make_trainer(group.ranks, point.batch);
  trainer_->set_batch(point.batch);
  StepPrinter printer(session_, point.runs.ranks,
                      trainer_->units_per_step_of_rank() * point.runs.ranks);
  auto run = measure_run(session_, *trainer_, group, baseline,
                         segment.is_whole() ? printer.observer() : nullptr);
  if (segment.is_whole() && run) printer.total(*run);
  return run;
}

/// Stores the run's record, and what the curve needs of it, at rank 0.
void Curve::keep(const CurveSegment& segment, Point& point, const RunResult& run) {
  std::string path;
  std::exception_ptr unwritten;
  try {
    if (files_) path = files_->write_run(run, segment, point.runs.ranks);
  } catch (const ResultError&) {
    unwritten = std::current_exception();  // the run counts: the curve may still find room
  }
  take(segment, run, path);
  if (run.status == Status::ok) {
    progress_->finish(run.throughput->mean, *run.unit);
    if (const std::string warning = divergence_warning(run);
        !warning.empty() && segment.leave_out == LeaveOut::none)
      session_.say("warning: " + warning);
  }
  publish_so_far();
  if (unwritten) std::rethrow_exception(unwritten);
}

/// Takes from a run what the curve needs, at rank 0.
void Curve::take(const CurveSegment& segment, const RunResult& run, const std::string& path) {
  PointRuns& point = points_[segment.point].runs;
  if (run.status == Status::ok) {
    PointRepeat repeat = point_repeat(run, path, segment.baseline, config().resource);
    repeat.repeat = segment.round + 1;
    point.of(segment.baseline, segment.leave_out).push_back(std::move(repeat));
  }
  if (segment.is_whole()) evidence_.push_back(diagnosis::run_evidence(measured_json(run)));
  noise_.add(run);
  ++done_;
}

/// Publishes the record that is left where a rank is killed now.
void Curve::publish_so_far() {
  publish_(make_record({Status::failed, fmt::format("ended after {} of {} runs", done_, runs_)}));
}

/// Returns the scaling record of the points that every finished round has measured.
ScalingCurve Curve::make_record(const Outcome& outcome) const {
  std::vector<PointRuns> runs;
  for (const Point& point : points_) runs.push_back(point.runs);
  ScalingCurve record = make_scaling_record(session_.record_context(measured_.loaded),
                                            points_.back().runs.ranks, runs, noise_, outcome);
  record.kept_rounds = kept_rounds_;
  return record;
}

void Curve::finish(Status status) {
  session_.agree_on_files([&] {
    if (!session_.is_root()) return;
    const std::string reason =
        status == Status::ok
            ? ""
            : fmt::format("ended after {} of {} runs: see the last run record", done_, runs_);
    record_ = make_record({status, reason});
    diagnosis::add_findings(record_, evidence_);
    if (files_) files_->write_curve(curve_json(record_));
    publish_(record_);
    if (uses_event_lines())
      write_event("result", {{"status", to_string(status)},
                             {"reason", reason},
                             {"points", record_.points.size()},
                             {"record", files_ ? Json(files_->path().string()) : Json()}});
    if (!config().json)
      (files_ ? print_view : print_data)("\n" + scaling_table(record_, session_.warnings.size()));
    if (!reason.empty()) session_.say(fmt::format("{}: {}", to_string(status), reason));
    if (files_) session_.say("record: " + files_->path().string());
  });
}

}  // namespace scalemark
