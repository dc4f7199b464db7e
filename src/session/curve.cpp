#include "session/curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "analysis/point_repeat.hpp"
#include "config/curves.hpp"
#include "report/console.hpp"
#include "result/preflight_reference.hpp"
#include "session/commands.hpp"
#include "session/step_printer.hpp"

namespace scalemark {

std::vector<std::int64_t> curve_ranks(const RunConfig& config, int world_size) {
  return config.ranks.empty() ? default_ranks(world_size) : config.ranks;
}

Curve::Curve(Session& session, LoadedConfig loaded, CurveFiles* files, Publish publish)
    : session_(session), loaded_(std::move(loaded)), files_(files), publish_(std::move(publish)) {
  const auto ranks = curve_ranks(config(), session.world.size());
  for (const std::int64_t n : ranks) points_.push_back(make_point(n, ranks.front()));
  plan_ = make_plan();
  session.world.watchdog().enter("model");
  trainer_ =
      std::make_unique<Trainer>(config(), *session.device, session.world, points_.back().batch);
  trainer_->keep_initial_weights();
}

ExitCode Curve::run() {
  announce();
  for (const Segment& segment : plan_) {
    const std::string status = measure(segment);
    if (status == "ok") continue;
    finish(status == "interrupted" ? Status::interrupted : Status::invalid);
    return exit_code_of_status(status);
  }
  finish(Status::ok);
  return ExitCode::ok;
}

Curve::Point Curve::make_point(std::int64_t ranks, std::int64_t base_ranks) {
  Point point;
  point.loaded = point_config(loaded_, ranks, base_ranks);
  point.batch = plan_batch(point.loaded.config, ranks);
  point.runs.ranks = static_cast<int>(ranks);
  session_.loaded = point.loaded;  // the groups' batch follows from it
  auto group = session_.world.split(session_.world.rank() < ranks ? 0 : -1);
  if (!group) return point;
  if (ranks > 1) point.baseline_group = make_run_group(session_, *group, true);
  point.group = make_run_group(session_, std::move(*group), false);
  return point;
}

/// Baselines come before their point within a round, so that a record can name its baseline.
std::vector<Curve::Segment> Curve::make_plan() const {
  std::vector<Segment> plan;
  for (int round = 0; round < config().repeats; ++round) {
    std::vector<std::size_t> order(points_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(config().seed + round));
    for (const std::size_t point : order) {
      if (config().baseline && points_[point].runs.ranks > 1) plan.push_back({point, round, true});
      plan.push_back({point, round, false});
    }
  }
  return plan;
}

/// Says what will be done and how long it takes, from a step of the largest point's batch that all
/// ranks run at once: the slowest case.
void Curve::announce() {
  session_.world.watchdog().enter("calibration");
  const double sample_seconds = trainer_->calibrate(session_.world) /
                                static_cast<double>(points_.back().batch.batch_size_per_rank);
  std::vector<PlannedSegment> planned;
  for (const Segment& segment : plan_)
    planned.push_back({title(segment),
                       sample_seconds * static_cast<double>(
                                            points_[segment.point].batch.batch_size_per_rank *
                                            (config().num_warmup_batches + config().num_batches))});
  if (session_.is_root()) progress_.emplace(std::move(planned));
}

std::string Curve::title(const Segment& segment) const {
  const int ranks = points_[segment.point].runs.ranks;
  return fmt::format("round {}/{}, {} rank{}{}", segment.round + 1, config().repeats, ranks,
                     ranks == 1 ? "" : "s", segment.baseline ? " without communication" : "");
}

/// All ranks of the world call it; those outside the point sleep until it is done. The status is
/// agreed.
std::string Curve::measure(const Segment& segment) {
  Point& point = points_[segment.point];
  session_.loaded = point.loaded;  // what the record shows
  auto& group = segment.baseline ? point.baseline_group : point.group;
  Json record;
  ExitCode code = ExitCode::ok;
  std::string message;
  if (group) {
    try {
      record = measure_here(segment, point, *group);
    } catch (const AgreedError& error) {
      code = error.code();
      message = error.what();
    }
  }
  await_point(group.has_value());
  session_.world.agree(code, message);
  if (session_.is_root()) keep(segment, point, record);
  return session_.world.broadcast(session_.is_root() ? record["status"].get<std::string>() : "");
}

/// Idle ranks wait without a deadline: those that measure watch themselves.
void Curve::await_point(bool takes_part) {
  Watchdog& watchdog = session_.world.watchdog();
  const double timeout = watchdog.timeout();
  if (!takes_part) watchdog.set_timeout(std::numeric_limits<double>::infinity());
  session_.world.barrier();
  watchdog.set_timeout(timeout);
}

Json Curve::measure_here(const Segment& segment, Point& point, RunGroup& group) {
  std::optional<Baseline> baseline;
  if (!segment.baseline && !point.runs.baselines.empty()) {
    const PointRepeat& last = point.runs.baselines.back();
    baseline = Baseline{last.units / last.seconds, last.step_seconds_mean};
  }
  if (progress_) progress_->start();
  trainer_->set_batch(point.batch);
  StepPrinter printer(session_, trainer_->units_per_step_of_rank() * point.runs.ranks);
  Json record = measure_run(session_, *trainer_, group, baseline,
                            segment.baseline ? nullptr : printer.observer());
  if (!segment.baseline && !record.is_null()) printer.total(record);
  return record;
}

/// Rank 0: stores the run's record and what the curve needs of it.
void Curve::keep(const Segment& segment, Point& point, const Json& record) {
  const std::string path =
      files_ ? files_->write_run(record, point.runs.ranks, segment.round + 1, segment.baseline)
             : "";
  if (record["status"] == "ok") {
    auto& runs = segment.baseline ? point.runs.baselines : point.runs.repeats;
    runs.push_back(point_repeat(record, path, segment.baseline, config().resource));
    progress_->finish(record["throughput"]["mean"], record["unit"]);
    if (const std::string warning = divergence_warning(record); !warning.empty())
      session_.say(warning);
  }
  noise_.add(record);
  ++done_;
  publish_(
      make_record(Status::failed, fmt::format("ended after {} of {} runs", done_, plan_.size())));
}

/// The scaling record of the points that every finished round has.
Json Curve::make_record(Status status, const std::string& reason) const {
  std::vector<PointRuns> runs;
  for (const Point& point : points_) runs.push_back(point.runs);
  Json record = make_scaling_record(loaded_, points_.back().runs.ranks, runs, status, reason,
                                    session_.system, recorded_environment(session_.environment));
  attach_preflight(record, session_.preflight);
  return record;
}

void Curve::finish(Status status) {
  session_.world.watchdog().enter("write results");
  session_.world.agree_on([&] {
    if (!session_.is_root()) return;
    const std::string reason =
        status == Status::ok ? ""
                             : fmt::format("ended after {} of {} runs: see the last run record",
                                           done_, plan_.size());
    record_ = make_record(status, reason);
    if (files_) files_->write_curve(record_);
    if (!config().json) fmt::print("\n{}", scaling_table(record_, noise_.warnings()));
    if (!reason.empty()) session_.say(fmt::format("{}: {}", to_string(status), reason));
    if (files_) session_.say("record: " + files_->path().string());
  });
}

}  // namespace scalemark
