// See record_context.hpp.
#include "result/record_context.hpp"

#include "record/read.hpp"
#include "result/record_schemas.hpp"
#include "result/warnings.hpp"

namespace scalemark {
namespace {

void set_preflight(Json& record, const Json& reference) {
  record["preflight"] = reference;
  explain_nulls(record, "preflight.verdict", "that preflight did not come to an end");
  explain_nulls(record, "preflight", "no preflight record was named: --preflight FILE");
}

}  // namespace

Json start_record(const std::string& kind, const RecordContext& context, const Outcome& outcome) {
  Json record = blank_record(kind);
  record.update(envelope(kind, outcome.status, outcome.reason));
  add_warnings(record, context.config.warnings);
  record["config"] = config_to_json(context.config);
  record["system"] = context.system.json;
  record["environment"] = context.environment;
  record["unavailable"] = context.system.unavailable;
  if (record.contains("preflight")) set_preflight(record, context.preflight);
  return record;
}

void set_context(record::Measured& result, const std::string& kind, const RecordContext& context,
                 const Outcome& outcome) {
  set_envelope(result, kind, outcome);
  result.warnings = context.config.warnings;
  std::erase(result.warnings, "");
  const Json settings = config_to_json(context.config);
  for (const auto& [key, setting] : settings.items())
    result.config.emplace_back(key, part_from<record::Setting>(setting));
  Json reasons = Json::object();
  for (const auto& [path, reason] : context.system.unavailable)
    reasons[path.substr(path.find('.') + 1)] = reason;
  result.system = part_from<record::System>(context.system.json, reasons);
  result.environment.assign(context.environment.begin(), context.environment.end());
  if (!context.preflight.is_null())
    result.preflight = part_from<record::PreflightReference>(context.preflight);
}

}  // namespace scalemark
