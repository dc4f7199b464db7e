// The envelope of every record: id, time, status, and the reasons for what is unknown.
#include "result/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string_view>

#include "error.hpp"
#include "measure/clock.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "result/record_schemas.hpp"

namespace scalemark {
namespace {
std::string reason_of(const Outcome& outcome) {
  if (outcome.ok() || !outcome.reason.empty()) return outcome.reason;
  return "ended with status " + to_string(outcome.status);
}

/// Where null says "not set" or "not built in", and the reasons themselves.
constexpr std::array<std::string_view, 4> kNullIsAValue{"build", "config", "environment",
                                                        "unavailable"};

/// `at`: the path of `node`; `below`: what of the path that is explained comes after it.
void explain_below(Json& reasons, const Json& node, const std::string& at, std::string_view below,
                   const std::string& reason) {
  const auto path_of = [&](const std::string& key) { return at.empty() ? key : at + "." + key; };
  if (node.is_array()) {
    for (const Json& part : node) explain_below(reasons, part, at, below, reason);
  } else if (!below.empty()) {
    const std::size_t dot = std::min(below.find('.'), below.size());
    const std::string key(below.substr(0, dot));
    below.remove_prefix(std::min(dot + 1, below.size()));
    if (node.is_object() && node.contains(key))
      explain_below(reasons, node[key], path_of(key), below, reason);
  } else if (node.is_object()) {
    for (const auto& [key, part] : node.items())
      explain_below(reasons, part, path_of(key), "", reason);
  } else if (node.is_null() && !reasons.contains(at)) {
    reasons[at] = reason;
  }
}

/// The pointer to the first number that is none.
std::optional<std::string> find_numberless(const Json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return "";
  if (!value.is_structured()) return std::nullopt;
  for (const auto& [key, part] : value.items())
    if (const auto found = find_numberless(part)) return "/" + key + *found;
  return std::nullopt;
}
}  // namespace

void refuse_numberless(const Json& record) {
  if (const auto place = find_numberless(record))
    throw ResultError(fmt::format(
        "{} of what was computed is no number: the records hold figures that nothing can be "
        "computed from; leave them out, or measure again",
        *place));
}

std::string random_uuid() {
  std::random_device device("/dev/urandom");
  std::array<std::uint32_t, 4> w{device(), device(), device(), device()};
  w[1] = (w[1] & 0xffff0fffU) | 0x00004000U;
  w[2] = (w[2] & 0x3fffffffU) | 0x80000000U;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", w[0], w[1] >> 16, w[1] & 0xffffU,
                     w[2] >> 16, w[2] & 0xffffU, w[3]);
}

Json envelope(const std::string& kind, Status status, const std::string& reason) {
  return {{"schema_version", kSchemaVersion},
          {"schema_revision", schema_revision()},
          {"kind", kind},
          {"id", random_uuid()},
          {"build", build_info()},
          {"created_at", utc_timestamp()},
          {"status", to_string(status)},
          {"reason", reason_of({status, reason})},
          {"warnings", Json::array()}};
}

void set_envelope(record::Envelope& record, const std::string& kind, const Outcome& outcome) {
  record.schema_version = kSchemaVersion;
  record.schema_revision = schema_revision();
  record.kind = kind;
  record.id = random_uuid();
  record.build = part_from<record::Build>(build_info());
  record.created_at = utc_timestamp();
  record.status = outcome.status;
  record.reason = reason_of(outcome);
}

void add_reason(Json& record, const std::string& path, const std::string& reason) {
  join_reason(record["unavailable"], path, reason);
}

void explain_nulls(Json& record, const std::string& path, const std::string& reason) {
  Json& reasons = record["unavailable"];
  if (path.empty()) {
    for (const auto& [key, part] : record.items())
      if (std::ranges::find(kNullIsAValue, key) == kNullIsAValue.end())
        explain_below(reasons, part, key, "", reason);
  } else {
    explain_below(reasons, record, "", path, reason);
  }
}

}  // namespace scalemark
