#include <memory>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "report/console.hpp"
#include "result/preflight_reference.hpp"
#include "session/batch_choice.hpp"
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
    if (!config.largest_batch) plan_batch(config, session.world.size());
    if (session.is_root() && config.output) output = std::make_unique<ResultFile>(*config.output);
  });
  const auto record_failure = [&](int exit_code, const std::string& message) {
    if (!output) return;
    Json record =
        make_failed_record(session.loaded, session.world.size(), status_of_exit(exit_code), message,
                           session.system, recorded_environment(session.environment));
    attach_preflight(record, session.preflight);
    output->write(record);
  };
  const LastWords words(record_failure);

  choose_batch(session, /*keeps_weights=*/false);
  RunGroup group = make_run_group(session, session.world, false);
  session.world.watchdog().enter("model");
  Trainer trainer(config, *session.device, session.world, group.batch);
  StepPrinter printer(session, trainer.units_per_step_of_rank() * session.world.size());
  Json record;
  try {
    record = measure_run(session, trainer, group, std::nullopt, printer.observer());
  } catch (const AgreedError&) {
    throw;
  } catch (
      const std::exception& error) {  // of this rank alone; an abort comes after the last words
    record_failure(static_cast<int>(exit_code_of(error)), error.what());
    throw;
  }
  return publish(session, printer, output.get(), record, run_summary);
}

}  // namespace scalemark
