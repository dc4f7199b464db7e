// What a record says of its surroundings, and the skeleton that every record of a measurement
// begins with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "platform/platform.hpp"
#include "record/measured.hpp"
#include "result/records.hpp"

namespace scalemark {

struct RecordContext {
  LoadedConfig config;
  SystemInfo system;
  std::map<std::string, std::string> environment;            ///< recorded_environment()
  std::optional<record::PreflightReference> preflight = {};  ///< of --preflight FILE
};

/// A record with all keys of its kind; filled are those of the envelope and what the context says.
/// Its `warnings` begin with those of the configuration, which the user has been told.
Json start_record(const std::string& kind, const RecordContext& context, const Outcome& outcome);

/// What a typed record says of its surroundings.
record::Settings settings_of(const LoadedConfig& config);
record::System system_of(const RecordContext& context);
/// config, system and environment, the envelope, and the warnings of the configuration, which the
/// user has been told.
template <typename T>
void set_surroundings(T& result, const std::string& kind, const RecordContext& context,
                      const Outcome& outcome) {
  set_envelope(result, kind, outcome);
  result.warnings = context.config.warnings;
  std::erase(result.warnings, "");
  result.config = settings_of(context.config);
  result.system = system_of(context);
  result.environment.assign(context.environment.begin(), context.environment.end());
}
/// The same with the preflight that was named.
template <typename T>
void set_context(T& result, const std::string& kind, const RecordContext& context,
                 const Outcome& outcome) {
  set_surroundings(result, kind, context, outcome);
  result.preflight = context.preflight;
}

}  // namespace scalemark
