// The envelope of every record: id, time, status, and the reasons for what is unknown.
#include "result/records.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <string_view>

#include "error.hpp"
#include "measure/clock.hpp"

namespace scalemark {
namespace {
/// RFC 4122, version 4, from the kernel's random numbers: ranks and hosts never share a seed.
std::string random_uuid() {
  std::random_device device("/dev/urandom");
  std::array<std::uint32_t, 4> w{device(), device(), device(), device()};
  w[1] = (w[1] & 0xffff0fffU) | 0x00004000U;
  w[2] = (w[2] & 0x3fffffffU) | 0x80000000U;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", w[0], w[1] >> 16, w[1] & 0xffffU,
                     w[2] >> 16, w[2] & 0xffffU, w[3]);
}

/// The parent of the last key of a dotted path, made where it is missing or null. Digits index
/// existing arrays.
Json& parent_of(Json& record, std::string_view path, std::string& key) {
  Json* node = &record;
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string part(path.substr(0, dot));
    node = node->is_array() ? &node->at(std::stoul(part)) : &(*node)[part];
    path.remove_prefix(dot + 1);
  }
  key = path;
  return *node;
}
}  // namespace

std::string to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::invalid:
      return "invalid";
    case Status::failed:
      return "failed";
    case Status::interrupted:
      return "interrupted";
    case Status::timeout:
      return "timeout";
  }
  return "failed";
}

Status status_of_exit(int exit_code) {
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::ok:
    case ExitCode::regression:  // verdicts of a comparison that itself went well
    case ExitCode::inconclusive:
      return Status::ok;
    case ExitCode::timeout:
      return Status::timeout;
    default:
      return Status::failed;
  }
}

Json envelope(const std::string& kind, Status status, const std::string& reason) {
  return {{"schema_version", kSchemaVersion},
          {"kind", kind},
          {"id", random_uuid()},
          {"build", build_info()},
          {"created_at", utc_timestamp()},
          {"status", to_string(status)},
          {"reason", reason}};
}

void set_unavailable(Json& record, const std::string& path, const std::string& reason) {
  std::string key;
  parent_of(record, path, key)[key] = nullptr;
  record["unavailable"][path] = reason;
}

void explain_nulls(Json& record, const std::string& reason) {
  for (const auto& [key, value] : record.items())
    if (value.is_null() && !record["unavailable"].contains(key))
      record["unavailable"][key] = reason;
}

void set_number(Json& record, const std::string& path, std::optional<double> value,
                const std::string& reason) {
  if (!value) return set_unavailable(record, path, reason);
  if (!std::isfinite(*value)) return set_unavailable(record, path, "not a finite number");
  std::string key;
  parent_of(record, path, key)[key] = *value;
}

}  // namespace scalemark
