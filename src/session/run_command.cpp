// Runs `scalemark run`: one measured run of all ranks.
#include <memory>
#include <optional>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "record/write.hpp"
#include "report/console.hpp"
#include "result/monitoring.hpp"
#include "session/announce.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "session/publish.hpp"
#include "session/step_printer.hpp"
#include "session/trace_pass.hpp"

namespace scalemark {
namespace {

/// Writes the log of --mllog, if it was asked for. One that cannot be written changes nothing of
/// what was measured.
ExitCode write_log(ResultFile* log, const RunResult& run) {
  try {
    if (log) log->write_text(mllog_text(run));
    return ExitCode::ok;
  } catch (const std::exception& error) {
    say_error(fmt::format("--mllog: no log was written: {}", error.what()));
    return ExitCode::result;
  }
}

}  // namespace

ExitCode run_command(Session& session) {
  const ResolvedConfig& config = session.config();
  std::unique_ptr<ResultFile> output, mllog;
  session.agree_on_files([&] {
    if (!config.largest_batch) plan_batch(config, session.world.size());
    if (session.is_root()) output = output_file(config);
    if (session.is_root() && config.mllog) mllog = std::make_unique<ResultFile>(*config.mllog);
  });
  TracePass trace(session, config.trace);
  MeasuredRecord kept(session, output.get());
  MeasuredConfig measured{session.loaded};
  const auto leave = [&](int exit_code, const std::string& message) {
    if (kept.is_kept()) return kept.leave(message);
    if (!output && !mllog) return;
    const RunResult failed =
        make_failed_run(session.record_context(measured.loaded), session.world.size(),
                        {status_of_exit(exit_code), message});
    write_log(mllog.get(), failed);
    if (output) output->write(unmeasured_json(failed));
  };
  return recording_failures(session, leave, [&] {
    measured = choose_batch(session, session.loaded, /*keeps_weights=*/false);
    RunGroup group = make_run_group(session, session.world, measured, false);
    announce_run(session, measured.config(), group.batch, {session.world.size()});
    session.world.watchdog().enter("model");
    Trainer trainer(measured.config(), *session.device, session.world, group.batch);
    StepPrinter printer(session, session.world.size(),
                        trainer.units_per_step_of_rank() * session.world.size());
    std::optional<RunResult> run =
        measure_run(session, trainer, group, std::nullopt, printer.observer());
    const ExitCode traced =
        trace.add_to(run, kept, group.ranks, [&](std::int64_t steps, StepTrace& to) {
          return trainer.trace(group.ranks, *group.communicator, steps, to);
        });
    const ExitCode code = publish(session, printer, output.get(), run, run_summary);
    const ExitCode logged = publish_at_root(session, [&] { return write_log(mllog.get(), *run); });
    return code != ExitCode::ok ? code : logged != ExitCode::ok ? logged : traced;
  });
}

}  // namespace scalemark
