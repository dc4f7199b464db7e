// What later records say of a preflight: `--preflight FILE` becomes their key `preflight`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/preflight.hpp"

namespace scalemark {

/// ConfigError where the path does not exist or the record is of --pinning, which measures nothing;
/// ResultError where it is unreadable, of another schema, or something else.
PreflightResult read_preflight_record(const std::filesystem::path& path);

/// For a launch on `hosts` (of every rank, repeated or not).
record::PreflightReference preflight_reference(const PreflightResult& preflight,
                                               const std::vector<std::string>& hosts);

}  // namespace scalemark
