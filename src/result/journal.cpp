// See journal.hpp.
#include "result/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "config/input_file.hpp"
#include "config/json_text.hpp"
#include "error.hpp"
#include "file_size_limit.hpp"
#include "platform/posix_file.hpp"
#include "result/schema_fault.hpp"

namespace scalemark {
namespace {

Json to_json(const JournalEntry& entry) {
  return {{"schema_version", kSchemaVersion},
          {"kind", "journal_entry"},
          {"point", entry.point},
          {"config_hash", entry.config_hash},
          {"revision", entry.revision},
          {"repeat", entry.repeat},
          {"status", entry.status},
          {"exit_code", entry.exit_code},
          {"reason", entry.reason},
          {"record", entry.record},
          {"seconds", entry.seconds},
          {"started_at", entry.started_at},
          {"settings", entry.settings}};
}

/// Of checked JSON.
JournalEntry from_json(const Json& json) {
  JournalEntry entry;
  entry.point = json.at("point");
  entry.config_hash = json.at("config_hash");
  entry.revision = json.at("revision");
  entry.repeat = json.at("repeat");
  entry.status = json.at("status");
  entry.exit_code = json.at("exit_code");
  entry.reason = json.at("reason");
  entry.record = json.at("record");
  entry.seconds = json.at("seconds");
  entry.started_at = json.at("started_at");
  entry.settings = json.at("settings");
  return entry;
}

JournalEntry parse_line(std::string_view line) {
  const Json json = parse_json_text(line, kDeepestText);
  if (const auto fault = schema_fault(json, "journal_entry", MissingKeys::refused))
    throw JsonFault(*fault);
  return from_json(json);
}

/// Appends the entry of every whole line; returns where the last of them ends.
std::size_t parse_lines(std::string_view text, const std::filesystem::path& path,
                        std::vector<JournalEntry>& entries) {
  std::size_t begin = 0, number = 1;
  for (std::size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1, ++number) {
    try {
      entries.push_back(parse_line(text.substr(begin, end - begin)));
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
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
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
  const std::string line =
      to_json(entry).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (const int error = write_all(file_, line); error != 0)
    throw ResultError(
        fmt::format("journal {}: cannot be written: {}", path_.string(), write_error_words(error)));
  entries_.push_back(entry);
}

}  // namespace scalemark
