// See preflight_reference.hpp.
#include "result/preflight_reference.hpp"

#include <fmt/format.h>

#include <set>

#include "error.hpp"

namespace scalemark {
namespace {

/// What is wrong with the parts that a reference takes over; empty where nothing is.
std::string what_is_wrong(const Json& record) {
  if (record["kind"] != "preflight")
    return fmt::format("its kind is {}; name what scalemark preflight --output wrote",
                       record["kind"].get<std::string>());
  if (!record.contains("created_at") || !record["created_at"].is_string())
    return "/created_at is not a string";
  const Json verdict = record.value("verdict", Json());
  if (verdict != "pass" && verdict != "warn" && verdict != "fail" &&
      !(verdict.is_null() && record["status"] != "ok"))
    return "/verdict is none of pass, warn and fail";
  const auto hosts = record.find("hosts");
  if (hosts == record.end() || !hosts->is_array()) return "/hosts is not an array";
  for (std::size_t i = 0; i < hosts->size(); ++i) {
    const Json& host = (*hosts)[i];
    if (!host.is_object() || !host.contains("host") || !host["host"].is_string())
      return fmt::format("/hosts/{}/host is not a string", i);
  }
  return "";
}

}  // namespace

Json read_preflight_record(const std::filesystem::path& path) {
  Json record = read_record(path);
  if (const std::string wrong = what_is_wrong(record); !wrong.empty())
    throw ResultError(fmt::format("--preflight {}: {}", path.string(), wrong));
  const Json::json_pointer pinning("/config/pinning/value");
  if (record.contains(pinning) && record[pinning] == true)
    throw ConfigError(
        fmt::format("--preflight {}: made by --pinning, which measures nothing; name the record of "
                    "a preflight without it",
                    path.string()));
  return record;
}

Json preflight_reference(const Json& preflight, const std::vector<std::string>& hosts) {
  std::set<std::string> uncovered(hosts.begin(), hosts.end());
  for (const Json& host : preflight.at("hosts")) uncovered.erase(host.at("host"));
  return {{"id", preflight.at("id")},
          {"status", preflight.at("status")},
          {"verdict", preflight.value("verdict", Json())},
          {"created_at", preflight.at("created_at")},
          {"hosts_not_covered", uncovered}};
}

}  // namespace scalemark
