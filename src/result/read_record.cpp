// Reading a record that anyone may have written: nothing in it is trusted before its kind and
// version are known.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "error.hpp"
#include "platform/posix_file.hpp"
#include "result/parse_json.hpp"
#include "result/record_schemas.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 64 << 20;  // 64 MiB: a record of a million steps has 20
constexpr int kDeepest = 64;
/// What scripts write beside records.
constexpr std::array<std::string_view, 3> kStudies{"speed", "gate_study", "published_curve"};

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw ResultError(fmt::format("record {}: {}", path.string(), what));
}

std::string read_file(const fs::path& path) {
  // Nonblocking: a FIFO of this name must not hang the reader.
  const FileDescriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      throw ConfigError(fmt::format(
          "record {}: no such file; give the path of a record of scalemark", path.string()));
    refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  struct stat there {};
  if (fstat(file.fd, &there) != 0 || !S_ISREG(there.st_mode)) refuse(path, "not a regular file");
  std::string text;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = read(file.fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes)
      refuse(path, fmt::format("larger than {} MiB, which no record is", kMostBytes >> 20));
  }
}

/// Before parsing, so that no depth can exhaust the stack of whoever walks the tree.
void refuse_deep(const fs::path& path, std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest)
        refuse(path, fmt::format("nested deeper than {} levels at byte {}", kDeepest, i));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

void check_envelope(const fs::path& path, const Json& record) {
  if (!record.is_object() || !record.contains("schema_version") || !record.contains("kind"))
    refuse(path, "not a record of scalemark: /schema_version and /kind are missing");
  const Json& version = record["schema_version"];
  if (!version.is_number_integer()) refuse(path, "/schema_version is not an integer");
  if (version < kSchemaVersion)
    refuse(path, fmt::format("/schema_version {} is older than {}: measure again with this version",
                             version.dump(), kSchemaVersion));
  if (version > kSchemaVersion)
    refuse(path, fmt::format("/schema_version {} is newer than {}: use the scalemark that wrote it",
                             version.dump(), kSchemaVersion));
  if (record.contains("schema_revision") && !record["schema_revision"].is_number_integer())
    refuse(path, "/schema_revision is not an integer");
  const Json& kind = record["kind"];
  const auto& kinds = record_kinds();
  if (!kind.is_string() || std::ranges::find(kinds, kind.get<std::string>()) == kinds.end())
    refuse(path, fmt::format("/kind {} is not a kind of record ({})",
                             kind.dump(-1, ' ', true, Json::error_handler_t::replace),
                             fmt::join(kinds, ", ")));
  for (const char* key : {"id", "status"})
    if (!record.contains(key) || !record[key].is_string())
      refuse(path, fmt::format("/{} is not a string", key));
}

void complete(const fs::path& path, Json& record) {
  check_envelope(path, record);
  // A baseline's checksum is over all that it says: whoever has checked it adds them.
  if (record["kind"] != "baseline") add_newer_keys(record);
}

Json read_json(const fs::path& path) {
  const std::string text = read_file(path);
  refuse_deep(path, text);
  try {
    return parse_json(text);
  } catch (const Json::exception& error) {
    refuse(path, fmt::format("not JSON: {}", error.what()));
  }
}
}  // namespace

Json read_record(const fs::path& path) {
  Json record = read_json(path);
  complete(path, record);
  return record;
}

Json read_record_or_study(const fs::path& path) {
  Json content = read_json(path);
  const bool study = content.is_object() &&
                     std::ranges::find(kStudies, content.value("kind", Json())) != kStudies.end();
  if (study) return content;
  complete(path, content);
  return content;
}

}  // namespace scalemark
