// Runs `scalemark run`: one measured run of all ranks.
#include <memory>
#include <optional>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "record/write.hpp"
#include "report/console.hpp"
#include "result/mllog.hpp"
#include "session/announce.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "session/publish.hpp"
#include "session/step_printer.hpp"
#include "session/trace_pass.hpp"

namespace scalemark {

ExitCode run_command(Session& session) {
  const ResolvedConfig& config = session.config();
  std::unique_ptr<ResultFile> output, mllog;
  session.world.agree_on([&] {
    if (!config.largest_batch) plan_batch(config, session.world.size());
    if (session.is_root() && config.output) output = std::make_unique<ResultFile>(*config.output);
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
    if (output) output->write(unmeasured_json(failed));
    if (mllog) mllog->write_text(mllog_text(failed));
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
    session.world.agree_on([&] {
      if (mllog) mllog->write_text(mllog_text(*run));
    });
    return code == ExitCode::ok ? traced : code;
  });
}

}  // namespace scalemark
