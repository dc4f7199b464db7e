// A whole scaling curve in one launch: every round measures every point once, in an order shuffled
// per round, so that a drift of the machine meets all points alike.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "analysis/point_repeat.hpp"
#include "analysis/scaling.hpp"
#include "config/names.hpp"
#include "measure/clock.hpp"
#include "models/catalog.hpp"
#include "report/console.hpp"
#include "report/noise_summary.hpp"
#include "report/progress.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/curve_files.hpp"
#include "session/measured_run.hpp"
#include "session/step_printer.hpp"

namespace scalemark {
namespace {

/// One measured run of the curve.
struct Segment {
  std::size_t point;
  int round;
  bool baseline;
};

/// A point of the curve as this rank sees it; the groups are empty where this rank idles.
struct Point {
  int ranks;
  std::optional<RunGroup> group, baseline_group;
  PointRuns runs;
};

std::vector<std::int64_t> curve_ranks(const RunConfig& config, int world_size) {
  return config.ranks.empty() ? default_ranks(world_size) : config.ranks;
}

/// Baselines come before their point within a round, so that a record can name its baseline.
std::vector<Segment> make_plan(const RunConfig& config, const std::vector<Point>& points) {
  std::vector<Segment> plan;
  for (int round = 0; round < config.repeats; ++round) {
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(config.seed + round));
    for (const std::size_t point : order) {
      if (config.baseline && points[point].ranks > 1) plan.push_back({point, round, true});
      plan.push_back({point, round, false});
    }
  }
  return plan;
}

class Curve {
 public:
  Curve(Session& session, std::unique_ptr<CurveFiles> files)
      : session_(session), files_(std::move(files)) {
    for (const auto ranks : curve_ranks(config(), session.world.size()))
      add_point(static_cast<int>(ranks));
    plan_ = make_plan(config(), points_);
    session.world.watchdog().enter("model");
    trainer_ = std::make_unique<Trainer>(config(), *session.device, session.world,
                                         plan_batch(config(), points_.back().ranks));
    trainer_->keep_initial_weights();
  }

  ExitCode run() {
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

 private:
  const RunConfig& config() const { return session_.config(); }

  void add_point(int ranks) {
    Point point{ranks, std::nullopt, std::nullopt, {}};
    point.runs.ranks = ranks;
    auto group = session_.world.split(session_.world.rank() < ranks ? 0 : -1);
    if (group) {
      if (ranks > 1) point.baseline_group = make_run_group(session_, *group, true);
      point.group = make_run_group(session_, std::move(*group), false);
    }
    points_.push_back(std::move(point));
  }

  /// Says what will be done and how long it takes, from a step that all ranks run at once: the
  /// slowest case.
  void announce() {
    session_.world.watchdog().enter("calibration");
    const double step_seconds = trainer_->calibrate(session_.world);
    std::vector<PlannedSegment> planned;
    for (const Segment& segment : plan_)
      planned.push_back(
          {title(segment),
           step_seconds * static_cast<double>(config().num_warmup_batches + config().num_batches)});
    if (session_.is_root()) progress_.emplace(std::move(planned));
  }

  std::string title(const Segment& segment) const {
    const int ranks = points_[segment.point].ranks;
    return fmt::format("round {}/{}, {} rank{}{}", segment.round + 1, config().repeats, ranks,
                       ranks == 1 ? "" : "s", segment.baseline ? " without communication" : "");
  }

  /// All ranks of the world call it; those outside the point sleep until it is done. The status is
  /// agreed.
  std::string measure(const Segment& segment) {
    Point& point = points_[segment.point];
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
  void await_point(bool takes_part) {
    Watchdog& watchdog = session_.world.watchdog();
    const double timeout = watchdog.timeout();
    if (!takes_part) watchdog.set_timeout(std::numeric_limits<double>::infinity());
    session_.world.barrier();
    watchdog.set_timeout(timeout);
  }

  Json measure_here(const Segment& segment, Point& point, RunGroup& group) {
    std::optional<Baseline> baseline;
    if (!segment.baseline && !point.runs.baselines.empty()) {
      const PointRepeat& last = point.runs.baselines.back();
      baseline = Baseline{last.units / last.seconds, last.step_seconds_mean};
    }
    if (progress_) progress_->start();
    StepPrinter printer(session_, trainer_->units_per_step_of_rank() * point.ranks);
    Json record = measure_run(session_, *trainer_, group, baseline,
                              segment.baseline ? nullptr : printer.observer());
    if (!segment.baseline && !record.is_null()) printer.total(record);
    return record;
  }

  /// Rank 0: stores the run's record and what the curve needs of it.
  void keep(const Segment& segment, Point& point, const Json& record) {
    const std::string path =
        files_ ? files_->write_run(record, point.ranks, segment.round + 1, segment.baseline) : "";
    if (record["status"] == "ok") {
      auto& runs = segment.baseline ? point.runs.baselines : point.runs.repeats;
      runs.push_back(point_repeat(record, path, segment.baseline));
      progress_->finish(record["throughput"]["mean"], record["unit"]);
      if (const std::string warning = divergence_warning(record); !warning.empty())
        session_.say(warning);
    }
    noise_.add(record);
    ++done_;
    session_.handover.publish_partial(
        make_record(Status::failed, fmt::format("ended after {} of {} runs", done_, plan_.size())));
  }

  /// The scaling record of the points that every finished round has.
  Json make_record(Status status, const std::string& reason) const {
    std::vector<PointRuns> runs;
    for (const Point& point : points_) runs.push_back(point.runs);
    return make_scaling_record(session_.loaded, session_.world.size(), runs, status, reason,
                               session_.system, recorded_environment(session_.environment));
  }

  void finish(Status status) {
    session_.world.watchdog().enter("write results");
    session_.world.agree_on([&] {
      if (!session_.is_root()) return;
      const std::string reason =
          status == Status::ok ? ""
                               : fmt::format("ended after {} of {} runs: see the last run record",
                                             done_, plan_.size());
      const Json record = make_record(status, reason);
      if (files_) files_->write_curve(record);
      if (config().json)
        fmt::print("{}", record_text(record));
      else
        fmt::print("\n{}", scaling_table(record, noise_.warnings()));
      if (!reason.empty()) session_.say(fmt::format("{}: {}", to_string(status), reason));
      if (files_) session_.say("record: " + files_->path().string());
    });
  }

  Session& session_;
  std::unique_ptr<CurveFiles> files_;
  std::vector<Point> points_;
  std::vector<Segment> plan_;
  std::unique_ptr<Trainer> trainer_;
  std::optional<PlanProgress> progress_;
  NoiseSummary noise_;
  std::size_t done_ = 0;
};

/// The largest point must fit in the world; batches must divide at every point.
void check_points(const Session& session) {
  const auto ranks = curve_ranks(session.config(), session.world.size());
  if (ranks.back() > session.world.size())
    throw ConfigError(
        fmt::format("--ranks asks for {} ranks, but this launch has a world of {}: start it with "
                    "mpirun -n {} (or srun -n {}), or "
                    "leave the launcher away and scalemark starts them itself",
                    ranks.back(), session.world.size(), ranks.back(), ranks.back()));
  if (!session.config().largest_batch)
    for (const auto n : ranks) plan_batch(session.config(), n);
}

}  // namespace

ExitCode scale_command(Session& session) {
  std::unique_ptr<CurveFiles> files;
  session.world.agree_on([&] {
    check_points(session);
    if (session.is_root() && session.config().output)
      files = std::make_unique<CurveFiles>(*session.config().output);
  });
  const LastWords words([&](int exit_code, const std::string& message) {
    session.handover.publish_abort(exit_code, message);
  });
  choose_batch(session, /*keeps_weights=*/true);
  return Curve(session, std::move(files)).run();
}

}  // namespace scalemark
