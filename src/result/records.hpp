// The envelope of every record and how records are written. Schemas lie in docs/schema/. Every key
// is always present; unknown is null with a reason under `unavailable`.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "error.hpp"
#include "json.hpp"
#include "platform/posix_file.hpp"
#include "record/read.hpp"
#include "result/outcome.hpp"

namespace scalemark {

inline constexpr int kSchemaVersion = 1;

/// What this binary is, and what it was built with.
record::Build build_info();

/// libtorch_cpu.so that the engine was linked with; empty in a build without one.
std::string linked_torch();

/// RFC 4122, version 4, from the kernel's random numbers: ranks and hosts never share a seed.
std::string random_uuid();

/// Sets what records of all kinds say: `id` is a random UUID (version 4). A status other than ok
/// without a reason gets words.
void set_envelope(record::Envelope& record, const std::string& kind, const Outcome& outcome);

/// The text of a record as it is written: indented, valid UTF-8 whatever the strings hold, with a
/// last newline.
std::string record_text(const Json& record);

struct OutputSettings;

/// What becomes of a finished measurement that lies where a result is written.
enum class Older {
  kept,      ///< as FILE.~N~, numbered as by cp --backup=numbered: no reader takes it for a record
  replaced,  ///< --overwrite
};

/// A place for a result, probed when it is made, so that a run never measures for nothing.
/// - refuses (ResultError): missing permission, read-only or full file system, a folder in its
/// place;
/// - follows symbolic links: the link stays, what it leads to is written, there or not;
/// - exclusive: a second writer of the same path gets a name of its own (`name.2.json`), both
/// results survive;
/// - keeps a measurement that is there, and that nobody can compute again: a run, an inference, a
///   curve, instances or a preflight with status ok or with figures; refuses where it cannot;
/// - keeps some room from then on, so that a disk that fills up meanwhile costs no measurement;
/// - messages name `flag`, by which the path was given;
/// - write(): over that hidden file in the same folder, fsync, rename, fsync of the folder. An
/// older
///   file stays byte-identical until the rename.
class ResultFile {
 public:
  /// Records of long runs reach some hundred kB.
  static constexpr std::size_t kReservedBytes = 1 << 20;
  explicit ResultFile(const std::filesystem::path& asked,
                      std::size_t reserved_bytes = kReservedBytes, std::string flag = "--output",
                      Older older = Older::kept);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  /// The path that is really written.
  const std::filesystem::path& path() const noexcept { return path_; }
  /// What is there with the id of this record is an earlier state of it, which is not kept.
  void write(const Json& record);
  void write_text(std::string_view text);
  /// Writes a text that comes in parts: append() them, then finish().
  void append(std::string_view part);
  void finish();

  /// What is to be written continues the measurement that is there, unless that is finished.
  void continue_older();
  /// Where the measurement lies now whose place was taken; empty: there was none.
  std::filesystem::path kept() const { return in_place_ ? kept_ : std::filesystem::path(); }

 private:
  void keep_older();
  void forget_older();
  [[noreturn]] void refuse_write(std::string_view what, int error);
  void write_temporary(std::string_view bytes, std::string_view what);
  void put_in_place();

  std::string flag_;
  std::filesystem::path path_;      ///< what is written
  std::unique_ptr<FileLock> lock_;  ///< outlives the temporary file
  std::filesystem::path temporary_;
  std::unique_ptr<FileDescriptor> parts_;  ///< append() writes there
  std::filesystem::path kept_;  ///< second name of the measurement that is there; empty: none
  std::string older_id_;        ///< its id
  bool older_finished_ = false, in_place_ = false;
};

/// What --overwrite says.
Older older_of(const OutputSettings& settings);
/// The place of --output, unless that was not given; null then.
std::unique_ptr<ResultFile> output_file(const OutputSettings& settings);

/// To the file (null: none), and to stdout where `json` was asked for: to each, whatever becomes of
/// the other. Then throws what went wrong.
void deliver(const Json& record, ResultFile* file, bool json);

/// Before a computed record is shown: ResultError with the place of a number that is none (NaN,
/// infinite). Reading refuses figures that lead there; what it lets through must not be shown.
void refuse_numberless(const Json& record);

/// Reads a record; keys that are newer than it are null, with a reason. ConfigError where the path
/// does not exist; ResultError where it is no regular file of at most 32 MiB, not JSON, not a
/// scalemark record, of another schema version, or where a value is not as its schema says, with
/// the place.
Json read_record(const std::filesystem::path& path);
/// Reads a record of a kind that is described in src/record.
template <typename T>
T read_typed_record(const std::filesystem::path& path) {
  const Json record = read_record(path);
  try {
    return record_from<T>(record);
  } catch (const RecordFault& fault) {
    throw ResultError("record " + path.string() + ": " + fault.what());
  }
}
/// Returns the record at `path`; nullopt where there is none, or none that can be read.
template <typename T>
std::optional<T> result_at(const std::filesystem::path& path) {
  try {
    return read_typed_record<T>(path);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}
/// Returns the record at `path` as JSON; null where there is none, or none that can be read.
Json record_at(const std::filesystem::path& path);

/// Returns the kind of a record that was read: "run", "scaling", ...
std::string kind_of(const Json& record);

/// Returns its id.
std::string id_of(const Json& record);

/// Returns what records of all kinds say, of one that was read.
record::AnyRecord envelope_of(const Json& record);

/// Parses the text of a record; `path` is where it came from.
Json parse_record(std::string_view text, const std::filesystem::path& path);

/// Reads a file that lies among records. Files of kind "speed", "gate_study", "published_curve" (of
/// scripts) and "planned_launches" (of sweeps) have no envelope: they are no records, and yet no
/// fault.
Json read_record_or_study(const std::filesystem::path& path);

}  // namespace scalemark
