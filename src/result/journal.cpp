// Writes and reads the journal of a sweep.
#include "result/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>

#include "config/json_text.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "platform/posix_file.hpp"
#include "record/parts.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

JournalEntry parse_line(std::string_view line) {
  try {
    return part_from<JournalEntry>(parse_json_text(line, kDeepestText));
  } catch (const RecordFault& fault) {
    throw JsonFault(fault.what());
  }
}

/// Throws JsonFault where another launch's entry names the same record: figures of one would be
/// those of another.
void refuse_other_record(const std::vector<JournalEntry>& entries, const JournalEntry& added,
                         std::map<std::string, std::size_t>& places) {
  if (added.record.empty()) return;
  const auto [place, is_new] = places.try_emplace(added.record, entries.size());
  if (is_new) return;
  const JournalEntry& first = entries[place->second];
  // Another build, and a repeated launch, write over the same file.
  if (first.point != added.point || first.repeat != added.repeat)
    throw JsonFault(
        fmt::format("it names {}, which is the record of another launch", quote(added.record)));
}

/// Appends the entry of every whole line; returns where the last of them ends.
std::size_t parse_lines(std::string_view text, const std::filesystem::path& path,
                        std::vector<JournalEntry>& entries) {
  std::size_t begin = 0, number = 1;
  std::map<std::string, std::size_t> places;
  for (std::size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1, ++number) {
    try {
      JournalEntry entry = parse_line(text.substr(begin, end - begin));
      refuse_other_record(entries, entry, places);
      entries.push_back(std::move(entry));
    } catch (const JsonFault& fault) {
      throw ResultError(fmt::format(
          "journal {}, line {}: {}; give another --output, or repair or remove the file",
          path.string(), number, fault.what()));
    }
  }
  return begin;
}

std::string text_of_journal(const std::filesystem::path& path) {
  try {
    return read_input_file(path, kLargestRecord);
  } catch (const InputFault& fault) {
    throw ResultError(fmt::format("journal {}: {}", path.string(), fault.what()));
  }
}

}  // namespace

void JournalEntry::describe(Fields& fields) {
  using J = JournalEntry;
  fields.add("schema_version", &J::schema_version, "1; others are refused").one_of({1});
  fields.add("kind", &J::kind, "what a line is").one_of({"journal_entry"});
  fields
      .add("point", &J::point,
           "SHA-256 over config_hash, ranks, ranks_per_node, cpus_per_rank, binding, the plan's "
           "variables, its level and the commands around its launches")
      .pattern(record::kSha256Pattern);
  fields.add("config_hash", &J::config_hash, "of the run").pattern(record::kSha256Pattern);
  fields.add("revision", &J::revision, "of the build");
  fields.add("repeat", &J::repeat, "of the point").at_least(1);
  fields.add("status", &J::status, "of the launch's record; without one, by its exit code")
      .one_of({"ok", "invalid", "failed", "interrupted", "timeout"});
  fields.add("exit_code", &J::exit_code, "docs/faults.md").within(0, 7);
  fields.add("reason", &J::reason, "why it is not ok");
  fields.add("record", &J::record, "path within the folder; empty where the launch left none");
  fields.add("seconds", &J::seconds, "from the start of the launch to its end")
      .unit("s")
      .at_least(0);
  fields.add("started_at", &J::started_at, "UTC");
  fields
      .add("settings", &J::settings,
           "that make the point differ from the others; alternate: its level")
      .types({"object"});
  fields
      .add("environment", &J::environment,
           "shown variables of whoever started the launch, without those of a job of Slurm")
      .optional();
  fields
      .add("values", &J::values, "of the plan, which its commands were given; absent: it has none")
      .optional();
}

Journal::Journal(std::filesystem::path path) : path_(std::move(path)) {
  const auto refuse = [&](int error) {
    throw ResultError(fmt::format("journal {}: {}; choose another folder with --output",
                                  path_.string(), std::strerror(error)));
  };
  const std::filesystem::path folder = folder_of(path_);
  const auto lock_file = folder / fmt::format(".{}.lock", path_.filename().string());
  try {
    lock_ = FileLock::try_take(lock_file);
  } catch (const std::system_error& error) {
    refuse(error.code().value());
  }
  if (!lock_)
    throw EnvironmentError(
        fmt::format("journal {}: another sweep writes to it; wait for it, or give another "
                    "--output. Where no other is at work, one that was killed on a file system "
                    "without locks has left {}: remove it",
                    path_.string(), lock_file.string()));
  file_ = open_own(path_, O_RDWR);
  if (file_ < 0) refuse(errno);
  sync_folder(folder);
  try {
    read();
  } catch (...) {
    close(file_);
    throw;
  }
}

Journal::~Journal() { close(file_); }

void Journal::read() {
  const std::string text = text_of_journal(path_);
  const std::size_t whole = parse_lines(text, path_, entries_);
  if (whole < text.size() && ftruncate(file_, static_cast<off_t>(whole)) != 0)
    throw ResultError(fmt::format("journal {}: its torn last line cannot be cut off: {}",
                                  path_.string(), std::strerror(errno)));
  lseek(file_, 0, SEEK_END);
}

std::vector<JournalEntry> parse_journal(std::string_view text, const std::filesystem::path& path) {
  std::vector<JournalEntry> entries;
  parse_lines(text, path, entries);
  return entries;
}

std::vector<JournalEntry> read_journal(const std::filesystem::path& path) {
  return parse_journal(text_of_journal(path), path);
}

const JournalEntry* Journal::find(const JournalEntry& launch) const {
  const JournalEntry* last = nullptr;
  for (const JournalEntry& entry : entries_)
    if (entry.same_launch(launch)) last = &entry;
  return last;
}

void Journal::append(const JournalEntry& entry) {
  Json told = part_json(entry);
  if (!entry.environment) told.erase("environment");
  if (!entry.values) told.erase("values");
  const std::string line = told.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (const int error = write_all(file_, line); error != 0)
    throw ResultError(
        fmt::format("journal {}: cannot be written: {}", path_.string(), write_error_words(error)));
  entries_.push_back(entry);
}

}  // namespace scalemark
