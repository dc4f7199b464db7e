// The envelope of every record: id, time and status.
#include "result/records.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>

#include "error.hpp"
#include "measure/clock.hpp"
#include "record/read.hpp"
#include "result/record_kinds.hpp"

namespace scalemark {
namespace {
std::string reason_of(const Outcome& outcome) {
  if (outcome.ok() || !outcome.reason.empty()) return outcome.reason;
  return "ended with status " + to_string(outcome.status);
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

void set_envelope(record::Envelope& record, const std::string& kind, const Outcome& outcome) {
  record.schema_version = kSchemaVersion;
  record.schema_revision = schema_revision();
  record.kind = kind;
  record.id = random_uuid();
  record.build = build_info();
  record.created_at = utc_timestamp();
  record.status = outcome.status;
  record.reason = reason_of(outcome);
}

}  // namespace scalemark
