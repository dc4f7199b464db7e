// What a sweep has measured so far: JSON lines, one a launch, each on disk before the next launch
// begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/posix_file.hpp"
#include "record/parts.hpp"
#include "result/records.hpp"

namespace scalemark {

/// A launch that has ended.
struct JournalEntry {
  int schema_version = kSchemaVersion;
  std::string kind = "journal_entry";
  std::string point;  ///< id of the point: its config_hash and how it is launched
  std::string config_hash;
  std::string revision;  ///< of the build
  std::int64_t repeat = 1;
  std::string status;  ///< of its record; of a launch that left none, by its exit code
  int exit_code = 0;
  std::string reason;      ///< why it is not ok
  std::string record;      ///< path within the sweep's folder; empty: none
  double seconds = 0;      ///< from its start to its end
  std::string started_at;  ///< UTC
  Json settings;           ///< that make the point differ
  /// Of who has started it, as records show variables; unknown where an older version wrote it.
  std::optional<Entries<std::string>> environment;
  std::optional<Entries<std::string>> values;  ///< of the plan, for its commands, if it has any
  static void describe(Fields& fields);

  /// The code of a command that goes no further for this launch, which is not ok.
  ExitCode failure() const {
    return exit_code == 0 ? ExitCode::failed : static_cast<ExitCode>(exit_code);
  }
  /// Whether both entries are of one launch of one point and build.
  bool same_launch(const JournalEntry& other) const {
    return point == other.point && revision == other.revision && repeat == other.repeat;
  }
};

/// The entries of a journal, which a sweep may be writing to: a torn last line is left out.
/// ResultError with the line and the place in it where it can't be read, or is not as
/// docs/schema/journal_entry.schema.json says.
std::vector<JournalEntry> read_journal(const std::filesystem::path& path);

/// Parses the text of a journal; `path` is where it came from.
std::vector<JournalEntry> parse_journal(std::string_view text, const std::filesystem::path& path);

/// A journal that this process alone may write to.
class Journal {
 public:
  /// Opens or makes it. What a writer that was killed left of its last line is cut off.
  /// EnvironmentError where another process has it open; ResultError where it is no journal, of
  /// another schema version, or can't be written.
  explicit Journal(std::filesystem::path path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::vector<JournalEntry>& entries() const { return entries_; }
  /// The last entry of this launch; null where it has none.
  const JournalEntry* find(const JournalEntry& launch) const;
  void append(const JournalEntry& entry);

 private:
  void read();

  std::filesystem::path path_;
  std::unique_ptr<FileLock> lock_;
  int file_ = -1;
  std::vector<JournalEntry> entries_;
};

}  // namespace scalemark
