// Measures the curves of one launch, one after the other, each with a model and a record of its
// own.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "analysis/scaling/scaling.hpp"
#include "comm/abort.hpp"
#include "config/curves.hpp"
#include "record/read.hpp"
#include "report/console.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/curve.hpp"
#include "session/publish.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Checks that the largest point fits in the world, that batches divide at every point, and that
/// the device has the resource that efficiency counts.
void check_launch(const Session& session) {
  const ResolvedConfig& config = session.config();
  const auto ranks = curve_ranks(config, session.world.size());
  if (ranks.back() > session.world.size())
    throw ConfigError(
        fmt::format("--ranks asks for {} ranks, but this launch has a world of {}: start it with "
                    "mpirun -n {} (or srun -n {}), or "
                    "leave the launcher away and scalemark starts them itself",
                    ranks.back(), session.world.size(), ranks.back(), ranks.back()));
  if (!config.largest_batch) check_points(config, ranks);
  if (config.resource == Resource::gpu && !session.device->device().is_cuda())
    throw ConfigError(
        "--resource gpu counts GPUs, and this run uses none: give rank, node or core");
}

/// Returns the curve in a file, or nothing where there is no complete one that can be read.
std::optional<ScalingCurve> finished_curve(const std::filesystem::path& path) {
  const Json record = record_at(path);
  try {
    if (record.is_null()) return std::nullopt;
    auto curve = record_from<ScalingCurve>(record);
    const auto has_rate = [](const auto& point) { return point.throughput.has_value(); };
    if (curve.status == Status::ok && std::ranges::all_of(curve.points, has_rate)) return curve;
  } catch (const RecordFault&) {  // the record is of another kind, or was changed by hand
  }
  return std::nullopt;
}

/// Measures the curves of one `scale`. Rank 0 holds those that are finished.
class Family {
 public:
  /// Checks that the file of every result can be written.
  explicit Family(Session& session) : session_(session), curves_(curves_of(session.config())) {
    session.agree_on_files([&] {
      check_launch(session);
      for (const CurveConfig& curve : curves_)
        files_.push_back(
            session.is_root() && curve.config.output
                ? std::make_unique<CurveFiles>(curve_path(*curve.config.output, curve.name),
                                               older_of(curve.config))
                : nullptr);
    });
    for (const CurveConfig& curve : curves_)
      traces_.push_back(std::make_unique<TracePass>(
          session, curve.config.trace ? std::optional(curve_path(*curve.config.trace, curve.name))
                                      : std::nullopt));
  }

  ExitCode run() {
    ExitCode code = ExitCode::ok;
    for (std::size_t i = take_finished(); i < curves_.size() && code == ExitCode::ok; ++i)
      code = measure(i);
    session_.agree_on_files([&] {
      if (session_.is_root()) print();
    });
    return code == ExitCode::ok ? traced_ : code;
  }

 private:
  /// Takes over the curves that an earlier command with this output finished before it was ended in
  /// a later one. Returns their number.
  std::size_t take_finished() {
    // A batch that is still to be found may differ from the one found before.
    if (curves_.size() == 1 || session_.config().largest_batch) return 0;
    session_.agree_on_files([&] {
      if (!session_.is_root() || !session_.config().output) return;
      const auto largest =
          static_cast<int>(curve_ranks(session_.config(), session_.world.size()).back());
      const ScalingCurve now =
          make_scaling_record(session_.record_context(session_.loaded), largest, {}, {},
                              {Status::failed, "not measured yet"});
      for (std::size_t i = 0; i < curves_.size(); ++i) {
        auto curve = finished_curve(files_[i]->path());
        if (!curve || curve->config_hash != config_hash(curves_[i].config, largest) ||
            !curve->system || !curve->environment ||
            Origins{curve->build, *curve->system, *curve->environment} !=
                Origins{now.build, *now.system, *now.environment})
          break;
        finished_.push_back(*std::move(curve));
      }
      if (finished_.size() == curves_.size()) finished_.clear();  // all are asked for once more
      for (std::size_t i = 0; i < finished_.size(); ++i)
        session_.say(fmt::format("curve {} of {}: {}: an earlier command finished it: {}", i + 1,
                                 curves_.size(), curves_[i].name, files_[i]->path().string()));
    });
    return static_cast<std::size_t>(
        std::stoi(session_.world.broadcast(std::to_string(finished_.size()))));
  }

  ExitCode measure(std::size_t i) {
    const CurveConfig& curve = curves_[i];
    if (!curve.name.empty())
      session_.say(fmt::format("curve {} of {}: {}", i + 1, curves_.size(), curve.name));
    LoadedConfig loaded = session_.loaded;
    loaded.config = curve.config;
    try {
      Curve measured(session_, choose_batch(session_, loaded, /*keeps_weights=*/true),
                     files_[i].get(), *traces_[i],
                     [this, i](const ScalingCurve& curve) { publish(i, curve); });
      const ExitCode code = measured.run();
      if (traced_ == ExitCode::ok) traced_ = measured.traced();
      if (!session_.is_root()) return code;
      finished_.push_back(measured.record());
      publish(i, std::nullopt);
      return code;
    } catch (const AgreedError& error) {
      if (session_.is_root()) leave(i, loaded, error);
      throw;
    }
  }

  /// Writes what was measured of the curve that failed. It goes to stdout even where no file can be
  /// written.
  void leave(std::size_t i, const LoadedConfig& loaded, const AgreedError& error) {
    if (!leaves_a_record(error.code()) && error.code() != ExitCode::result) return;
    const Outcome outcome{status_of_exit(static_cast<int>(error.code())), error.what()};
    ScalingCurve curve = so_far_ ? *so_far_
                                 : make_scaling_record(session_.record_context(loaded),
                                                       session_.world.size(), {}, {}, outcome);
    if (curve.status != Status::ok) {
      curve.status = outcome.status;
      curve.reason = outcome.reason;
    }
    try {
      if (files_[i]) files_[i]->write_curve(curve_json(curve));
    } catch (const ResultError&) {  // writing failed, probably for the reason that brought us here
    }
    finished_.push_back(std::move(curve));
    publish(i, std::nullopt);
    if (session_.config().json) print();
  }

  void publish(std::size_t i, const std::optional<ScalingCurve>& curve) {
    so_far_ = curve;
    const bool complete = curve && curve->status == Status::ok;
    Json finished = finished_json();
    if (complete) finished.push_back(curve_json(*curve));
    session_.handover.publish_partial({std::move(finished),
                                       curve && !complete ? curve_json(*curve) : Json(),
                                       files_[i] ? files_[i]->path().string() : ""});
    if (complete && files_[i] && i + 1 == curves_.size() && !traces_[i]->wanted() &&
        !session_.config().json)
      session_.settle(ExitCode::ok);
  }

  Json finished_json() const {
    Json records = Json::array();
    for (const ScalingCurve& curve : finished_) records.push_back(curve_json(curve));
    return records;
  }

  /// Prints the records, or a comparison of the curves where at least two are complete.
  void print() const {
    const bool alone = curves_.size() == 1;
    if (session_.config().json)
      return print_data(record_text(alone ? curve_json(finished_.front()) : finished_json()));
    std::vector<std::string> names;
    std::vector<ScalingCurve> complete;
    for (std::size_t i = 0; i < finished_.size(); ++i) {
      if (finished_[i].status != Status::ok) continue;
      names.push_back(curves_[i].name);
      complete.push_back(finished_[i]);
    }
    if (const std::string table = family_table(names, complete); !table.empty())
      print_view("\n" + table);
  }

  Session& session_;
  std::vector<CurveConfig> curves_;
  std::vector<std::unique_ptr<CurveFiles>> files_;
  std::vector<std::unique_ptr<TracePass>> traces_;
  ExitCode traced_ = ExitCode::ok;
  std::vector<ScalingCurve> finished_;
  std::optional<ScalingCurve> so_far_;  ///< of the curve that is measured; unset before its first
                                        ///< run
};

}  // namespace

ExitCode scale_command(Session& session) {
  const AbortHandler words([&](int exit_code, const std::string& message) {
    if (!session.is_settled()) session.handover.publish_abort({exit_code, message});
  });
  return Family(session).run();
}

}  // namespace scalemark
