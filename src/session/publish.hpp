// Ends a command: the record of rank 0 becomes a file, lines and an exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "record/measured.hpp"
#include "record/write.hpp"
#include "result/records.hpp"
#include "session/commands.hpp"
#include "session/step_printer.hpp"

namespace scalemark {

/// Calls `publish` at rank 0. All ranks call this function and return the code that `publish` gave,
/// or throw AgreedError where it throws.
ExitCode publish_at_root(Session& session, const std::function<ExitCode()>& publish);

/// Writes a record and says how the run ended. This is what publish() does at rank 0.
ExitCode publish_record(Session& session, ResultFile* output, const record::Measured& run,
                        const Json& record, const std::function<std::string()>& summary);

/// Ends `run` and `infer`: writes the record to `output`, unless that is null, and says what it
/// says. `summary` makes the text for people, without the warnings that they were told already. All
/// ranks call it, with the run of rank 0. The exit code is the same on all.
template <typename Run>
ExitCode publish(Session& session, StepPrinter& printer, ResultFile* output,
                 const std::optional<Run>& run,
                 std::string (*summary)(const Run& run, std::size_t told)) {
  return publish_at_root(session, [&] {
    printer.total(*run);
    return publish_record(session, output, *run, measured_json(*run),
                          [&] { return summary(*run, session.warnings.size()); });
  });
}

/// Runs `measure`, and calls `leave` to write what is left where it fails: before an abort
/// (AbortHandler), on an error of this rank alone, or on one that ranks agree on where
/// leaves_a_record(). The supervisor hears of an abort too.
ExitCode recording_failures(
    const Session& session,
    const std::function<void(int exit_code, const std::string& message)>& leave,
    const std::function<ExitCode()>& measure);

}  // namespace scalemark
