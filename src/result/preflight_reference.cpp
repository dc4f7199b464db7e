// Reads the preflight record that a later record refers to.
#include "result/preflight_reference.hpp"

#include <fmt/format.h>

#include <set>

#include "error.hpp"
#include "record/read.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

/// Throws RecordFault for a value that is not as described.
PreflightResult preflight_from(const Json& record) {
  if (const std::string kind = record.at("kind"); kind != "preflight")
    throw RecordFault(
        fmt::format("its kind is {}; name what scalemark preflight --output wrote", kind));
  auto result = record_from<PreflightResult>(record);
  if (!result.verdict && result.status == Status::ok)
    throw RecordFault("/verdict is none of pass, warn and fail");
  return result;
}

}  // namespace

PreflightResult read_preflight_record(const std::filesystem::path& path) {
  const Json record = read_record(path);
  try {
    PreflightResult result = preflight_from(record);
    if (!result.of_pinning()) return result;
  } catch (const RecordFault& fault) {
    throw ResultError(fmt::format("--preflight {}: {}", path.string(), fault.what()));
  }
  throw ConfigError(
      fmt::format("--preflight {}: made by --pinning, which measures nothing; name the record of "
                  "a preflight without it",
                  path.string()));
}

record::PreflightReference preflight_reference(const PreflightResult& preflight,
                                               const std::vector<std::string>& hosts) {
  std::set<std::string> uncovered(hosts.begin(), hosts.end());
  for (const record::CheckedHost& host : preflight.hosts) uncovered.erase(host.host);
  record::PreflightReference reference{preflight.id,
                                       preflight.status,
                                       {},
                                       preflight.created_at,
                                       {uncovered.begin(), uncovered.end()}};
  if (preflight.verdict) reference.verdict = to_string(*preflight.verdict);
  return reference;
}

}  // namespace scalemark
