#include "session/publish.hpp"

#include <fmt/format.h>

namespace scalemark {

ExitCode publish_at_root(Session& session, const std::function<ExitCode()>& publish) {
  ExitCode code = ExitCode::ok;
  session.world.agree_on([&] {
    if (session.is_root()) code = publish();
  });
  return static_cast<ExitCode>(
      std::stoi(session.world.broadcast(std::to_string(static_cast<int>(code)))));
}

ExitCode publish(Session& session, StepPrinter& printer, ResultFile* output, const Json& record,
                 const std::function<std::string(const Json&, std::size_t told)>& summary) {
  return publish_at_root(session, [&] {
    printer.total(record);
    if (output) output->write(record);
    if (session.config().json) fmt::print("{}", record_text(record));
    session.say(summary(record, session.warnings.size()));
    if (output) session.say("record: " + output->path().string());
    return exit_code_of(status_of(record));
  });
}

}  // namespace scalemark
