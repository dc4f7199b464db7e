#include <memory>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "report/console.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "session/publish.hpp"
#include "session/step_printer.hpp"

namespace scalemark {

ExitCode exit_code_of_status(const std::string& status) {
  if (status == "ok") return ExitCode::ok;
  return status == "timeout" ? ExitCode::timeout : ExitCode::failed;
}

ExitCode run_command(Session& session) {
  const RunConfig& config = session.config();
  std::unique_ptr<ResultFile> output;
  session.world.agree_on([&] {
    plan_batch(config, session.world.size());
    if (session.is_root() && config.output) output = std::make_unique<ResultFile>(*config.output);
  });
  const LastWords words([&](int exit_code, const std::string& message) {
    if (output)
      output->write(make_failed_record(session.loaded, session.world.size(),
                                       status_of_exit(exit_code), message, session.system,
                                       recorded_environment(session.environment)));
  });

  RunGroup group = make_run_group(session, session.world, false);
  session.world.watchdog().enter("model");
  Trainer trainer(config, *session.device, session.world, group.batch);
  StepPrinter printer(session, trainer.units_per_step_of_rank() * session.world.size());
  const Json record = measure_run(session, trainer, group, std::nullopt, printer.observer());
  return publish(session, printer, output.get(), record, run_summary);
}

}  // namespace scalemark
