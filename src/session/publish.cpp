// Writes the record of a command, or what is left of it where the measurement fails.
#include "session/publish.hpp"

#include <fmt/format.h>

#include "comm/abort.hpp"
#include "streams.hpp"

namespace scalemark {

ExitCode publish_at_root(Session& session, const std::function<ExitCode()>& publish) {
  ExitCode code = ExitCode::ok;
  session.agree_on_files([&] {
    if (session.is_root()) code = publish();
  });
  return static_cast<ExitCode>(
      std::stoi(session.world.broadcast(std::to_string(static_cast<int>(code)))));
}

ExitCode publish_record(Session& session, ResultFile* output, const record::Measured& run,
                        const Json& record, const std::function<std::string()>& summary) {
  deliver(record, output, session.config().json);
  if (uses_event_lines())
    write_event("result", {{"status", to_string(run.status)},
                           {"reason", run.reason},
                           {"throughput", record["throughput"]},
                           {"unit", record["unit"]},
                           {"record", output ? Json(output->path().string()) : Json()}});
  session.say(summary());
  session.handover.publish_partial(
      {Json::array({record}), nullptr, output ? output->path().string() : ""});
  if (output) {
    session.say("record: " + output->path().string());
    session.settle(exit_code_of(run.status));
  }
  return exit_code_of(run.status);
}

ExitCode recording_failures(
    const Session& session,
    const std::function<void(int exit_code, const std::string& message)>& leave,
    const std::function<ExitCode()>& measure) {
  const AbortHandler words([&](int exit_code, const std::string& message) {
    if (session.is_settled()) return;
    leave(exit_code, message);
    session.handover.publish_abort({exit_code, message});
  });
  try {
    return measure();
  } catch (const AgreedError& error) {
    if (!session.is_settled() &&
        (leaves_a_record(error.code()) || dynamic_cast<const AgreedWhileMeasuring*>(&error)))
      leave(static_cast<int>(error.code()), error.what());
    throw;
  } catch (const std::exception& error) {  // an error of this rank alone, which was measuring
    if (!session.is_settled())
      leave(static_cast<int>(exit_code_of(error)), measuring_words(error, session));
    throw;
  }
}

}  // namespace scalemark
