// Fills in what a record says of its surroundings.
#include "result/record_context.hpp"

#include <algorithm>

#include "config/shown_variables.hpp"
#include "record/read.hpp"
#include "result/measured_launch.hpp"

namespace scalemark {
record::Settings settings_of(const LoadedConfig& config) {
  record::Settings settings;
  const Json written = json_without_credentials(config_to_json(config));
  for (const auto& [key, setting] : written.items())
    settings.emplace_back(key, part_from<record::Setting>(setting));
  return settings;
}

record::System system_of(const RecordContext& context) {
  Json reasons = Json::object();
  for (const auto& [path, reason] : context.system.unavailable)
    reasons[path.substr(path.find('.') + 1)] = reason;
  return part_from<record::System>(context.system.json, reasons);
}

bool Origins::operator==(const Origins& other) const {
  const auto settings = [](const Entries<std::string>& environment) {
    return without_variables_of_job({environment.begin(), environment.end()});
  };
  return build == other.build && machine_of(system) == machine_of(other.system) &&
         settings(environment) == settings(other.environment);
}

void set_start(record::Context& record, const std::string& started_at) {
  if (started_at.empty()) return;
  record.started_at = started_at;
  record.created_at = std::max(record.created_at, started_at);
}

}  // namespace scalemark
