// Reading a record that anyone may have written: nothing in it is trusted before its kind and
// version are known.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "config/json_text.hpp"
#include "error.hpp"
#include "record/read.hpp"
#include "result/record_kinds.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// What says that a file is a record, before its type is known.
constexpr const char *kVersion = "schema_version", *kRevision = "schema_revision", *kKind = "kind",
                     *kId = "id";

/// What scripts, and sweeps, write beside records.
constexpr std::array<std::string_view, 4> kStudies{"speed", "gate_study", "published_curve",
                                                   "planned_launches"};

[[noreturn]] void refuse_record(const fs::path& path, const std::string& what) {
  throw ResultError(fmt::format("record {}: {}", path.string(), what));
}

std::string read_file(const fs::path& path) {
  try {
    return read_input_file(path, kLargestRecord);
  } catch (const InputFault& fault) {
    if (!fault.missing) refuse_record(path, fault.what());
    throw ConfigError(fmt::format("record {}: {}; give the path of a record of scalemark",
                                  path.string(), fault.what()));
  }
}

void check_envelope(const fs::path& path, const Json& record) {
  if (!record.is_object() || !record.contains(kVersion) || !record.contains(kKind))
    refuse_record(path, "not a record of scalemark: /schema_version and /kind are missing");
  const Json& version = record[kVersion];
  if (!version.is_number_integer()) refuse_record(path, "/schema_version is not an integer");
  if (version < kSchemaVersion)
    refuse_record(
        path, fmt::format("/schema_version {} is older than {}: measure again with this version",
                          version.dump(), kSchemaVersion));
  if (version > kSchemaVersion)
    refuse_record(
        path, fmt::format("/schema_version {} is newer than {}: use the scalemark that wrote it",
                          version.dump(), kSchemaVersion));
  if (record.contains(kRevision) && !record[kRevision].is_number_integer())
    refuse_record(path, "/schema_revision is not an integer");
  const Json& kind = record[kKind];
  const auto& kinds = record_kinds();
  if (!kind.is_string() || std::ranges::find(kinds, kind.get<std::string>()) == kinds.end())
    refuse_record(path, fmt::format("/kind {} is not a kind of record ({})",
                                    kind.dump(-1, ' ', true, Json::error_handler_t::replace),
                                    fmt::join(kinds, ", ")));
  for (const char* key : {kId, "status"})
    if (!record.contains(key) || !record[key].is_string())
      refuse_record(path, fmt::format("/{} is not a string", key));
}

void complete(const fs::path& path, Json& record) {
  check_envelope(path, record);
  try {
    check_values(record);
  } catch (const RecordFault& fault) {
    refuse_record(path,
                  fmt::format("{}; docs/schema/{}.schema.json says what it may be: the file was "
                              "damaged or changed by hand, measure again",
                              fault.what(), kind_of(record)));
  }
  if (const auto fault = contradiction(record))
    refuse_record(path, fmt::format("{}: the record contradicts itself (docs/measurements.md); it "
                                    "was damaged or changed by hand, measure again",
                                    *fault));
  // A baseline's checksum is over all that it says: whoever has checked it adds them.
  if (kind_of(record) != "baseline") add_newer_keys(record);
}

Json parse_json(std::string_view text, const fs::path& path) {
  try {
    return parse_json_text(text, kDeepestRecord);
  } catch (const JsonFault& fault) {
    refuse_record(path, fmt::format("not JSON: {}", fault.what()));
  }
}
}  // namespace

Json parse_record(std::string_view text, const fs::path& path) {
  Json record = parse_json(text, path);
  complete(path, record);
  return record;
}

record::AnyRecord envelope_of(const Json& record) {
  return record_from<record::AnyRecord>(record, MissingKeys::allowed);
}

std::string kind_of(const Json& record) { return record.at(kKind); }

std::string id_of(const Json& record) { return record.at(kId); }

Json read_record(const fs::path& path) { return parse_record(read_file(path), path); }

Json record_at(const fs::path& path) {
  try {
    return read_record(path);
  } catch (const std::exception&) {
    return nullptr;
  }
}

Json read_record_or_study(const fs::path& path) {
  Json content = parse_json(read_file(path), path);
  const bool study =
      content.is_object() && content.value(kKind, Json()).is_string() &&
      std::ranges::find(kStudies, content[kKind].get<std::string>()) != kStudies.end();
  if (study) return content;
  complete(path, content);
  return content;
}

}  // namespace scalemark
