// What a record says of its surroundings.
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

/// Where, by what and under which variables something was measured.
struct Origins {
  const record::Build& build;
  const record::System& system;
  const Entries<std::string>& environment;  ///< as records have it
  /// Whether it is one program on one machine, with the same variables but for those of a job,
  /// since the next one goes on with what the last one began.
  bool operator==(const Origins& other) const;
};

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
  result.environment = Entries<std::string>(context.environment.begin(), context.environment.end());
}
/// Sets the context, with the preflight that was named.
template <typename T>
void set_context(T& result, const std::string& kind, const RecordContext& context,
                 const Outcome& outcome) {
  set_surroundings(result, kind, context, outcome);
  result.preflight = context.preflight;
}

/// The time at which it was begun; nothing where that is empty. A record whose clock was set back
/// meanwhile is created no earlier.
void set_start(record::Context& record, const std::string& started_at);

}  // namespace scalemark
