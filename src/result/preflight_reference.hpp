// What later records say of a preflight: `--preflight FILE` becomes their key `preflight`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "result/records.hpp"

namespace scalemark {

/// A record of kind preflight. ConfigError where the path does not exist or the record is of
/// --pinning, which measures nothing; ResultError where it is unreadable, of another schema, or
/// something else.
Json read_preflight_record(const std::filesystem::path& path);

/// {"id", "status", "verdict", "created_at", "hosts_not_covered"} for a launch on `hosts` (of every
/// rank, repeated or not). `verdict` is null where that preflight did not come to an end.
Json preflight_reference(const Json& preflight, const std::vector<std::string>& hosts);

}  // namespace scalemark
