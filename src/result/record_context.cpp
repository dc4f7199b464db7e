// See record_context.hpp.
#include "result/record_context.hpp"

#include "record/read.hpp"
#include "record/write.hpp"
#include "result/record_schemas.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {

constexpr const char* kNoPreflight = "no preflight record was named: --preflight FILE";

}  // namespace

Json start_record(const std::string& kind, const RecordContext& context, const Outcome& outcome) {
  Json record = blank_record(kind);
  record.update(envelope(kind, outcome.status, outcome.reason));
  add_warnings(record, context.config.warnings);
  record["config"] = config_to_json(context.config);
  record["system"] = context.system.json;
  record["environment"] = context.environment;
  record["unavailable"] = context.system.unavailable;
  if (record.contains("preflight"))
    set_part(record, "preflight", Known(context.preflight, kNoPreflight));
  return record;
}

record::Settings settings_of(const LoadedConfig& config) {
  record::Settings settings;
  const Json written = config_to_json(config);
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

}  // namespace scalemark
