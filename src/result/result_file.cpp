// Writing a result so that no reader sees half a file, no writer overwrites another, and nothing is
// measured for nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "config/json_text.hpp"
#include "config/keys/output.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "platform/posix_file.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr int kMostWriters = 1000;

std::string_view remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose another folder";
    case EROFS:
      return "the file system is read-only: choose another folder";
    case EACCES:
    case EPERM:
      return "choose a folder that you may write to";
    default:
      return "choose another path";
  }
}

/// A path as the user gave it.
struct Asked {
  const fs::path& path;
  const std::string& flag;
};

[[noreturn]] void refuse(const Asked& asked, std::string_view what, int error) {
  const std::string advice =
      error == EFBIG ? "" : fmt::format("; {} with {}", remedy(error), asked.flag);
  throw ResultError(fmt::format("result {}: {}: {}{}", asked.path.string(), what,
                                write_error_words(error), advice));
}

/// Hidden, beside the result (rename works only within a file system), with a known pattern so that
/// leftovers are found.
fs::path beside(const fs::path& path, std::string_view suffix) {
  return folder_of(path) / fmt::format(".{}{}", path.filename().string(), suffix);
}
fs::path temporary_for(const fs::path& path) { return beside(path, ".tmp"); }

/// Null where another holds it.
std::unique_ptr<FileLock> try_lock(const Asked& asked) {
  try {
    return FileLock::try_take(beside(asked.path, ".lock"));
  } catch (const std::system_error& error) {
    refuse(asked, fmt::format("cannot create a file in {}", folder_of(asked.path).string()),
           error.code().value());
  }
}

/// name.json, name.2.json, name.3.json ...
fs::path numbered(const fs::path& path, int number) {
  if (number == 1) return path;
  fs::path named = path;
  return named.replace_filename(
      fmt::format("{}.{}{}", path.stem().string(), number, path.extension().string()));
}

/// What a symbolic link leads to, there or not: the link stays, and what it names is written,
/// locked and numbered, so that it makes no difference by which name a result is asked for.
fs::path followed(fs::path path, const std::string& flag) {
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    if (links == kMostLinks) refuse({path, flag}, "symbolic links lead in a circle", ELOOP);
    struct stat link {};
    if (lstat(path.c_str(), &link) == 0 && is_planted(link, folder_of(path)))
      refuse({path, flag}, "another user's symbolic link in a folder that all may write to", EPERM);
    const fs::path target = fs::read_symlink(path, error);
    if (error) refuse({path, flag}, "the symbolic link cannot be read", error.value());
    path = folder_of(path) / target;  // an absolute one replaces the folder
  }
  return path;
}

void refuse_other_than_file(const Asked& asked) {
  struct stat there {};
  if (stat(asked.path.c_str(), &there) != 0) return;
  if (S_ISDIR(there.st_mode)) refuse(asked, "there is a folder of this name", EISDIR);
  if (!S_ISREG(there.st_mode))
    throw ResultError(fmt::format("result {}: not a regular file; choose another path with {}",
                                  asked.path.string(), asked.flag));
  if (is_planted(there, folder_of(asked.path)))
    refuse(asked, "another user's file in a folder that all may write to", EPERM);
  if (access(asked.path.c_str(), W_OK) != 0)
    refuse(asked, "the file that is there may not be replaced", errno);
}
/// A measurement that lies where a result is to be written.
struct OlderMeasurement {
  std::string text, id;
  bool finished = false;
};

bool has_figures(const Json& record) {
  const auto has_rate = [](const Json& part) {
    return part.is_object() && !part.value("throughput", Json()).is_null();
  };
  const Json points = record.value("points", Json::array());
  return has_rate(record) || std::ranges::any_of(points, has_rate);
}

/// Whatever version wrote it. Nothing where no measurement is there, or one without figures; the
/// curve of a sweep, whose launches lie in its folder, can be made again.
std::optional<OlderMeasurement> measurement_at(const fs::path& path) {
  constexpr std::array kMeasured{"run", "inference", "scaling", "instances", "preflight"};
  try {
    OlderMeasurement found{read_input_file(path, kLargestRecord), "", false};
    const Json record = parse_json_text(found.text, kDeepestRecord);
    if (!record.is_object() ||
        std::ranges::find(kMeasured, record.value("kind", Json())) == kMeasured.end() ||
        (record["kind"] == "scaling" && record.value("repeat_unit", Json()) == "launch"))
      return std::nullopt;
    found.id = record.value("id", "");
    found.finished = record.value("status", Json()) == "ok";
    if (found.finished || has_figures(record)) return found;
  } catch (const std::exception&) {  // nothing there, or nothing of ours
  }
  return std::nullopt;
}

/// FILE.~N~
fs::path backup_of(const fs::path& path, std::int64_t number) {
  return fmt::format("{}.~{}~", path.string(), number);
}

/// The number in the name of a backup of `path`; 0 for other files.
std::int64_t backup_number(const fs::path& path, const fs::path& other) {
  std::string_view name = other.native();
  name.remove_prefix(name.rfind('/') + 1);
  const std::string begin = path.filename().string() + ".~";
  if (!name.starts_with(begin) || !name.ends_with('~')) return 0;
  name.remove_prefix(begin.size());
  name.remove_suffix(1);
  return parse_integer(name).value_or(0);
}

/// The same file under another name, or a copy where the file system has no such names. Returns 0
/// or errno.
int give_second_name(const fs::path& path, const fs::path& second, std::string_view text) {
  if (link(path.c_str(), second.c_str()) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) return errno;
  const FileDescriptor file{open(second.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.fd < 0) return errno;
  const int error = write_all(file.fd, text);
  if (error != 0) unlink(second.c_str());
  return error;
}
}  // namespace

std::string record_text(const Json& record) {
  return record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ResultFile::ResultFile(const fs::path& asked, std::size_t reserved_bytes, std::string flag,
                       Older older)
    : flag_(std::move(flag)) {
  if (asked == "-")
    throw ConfigError(flag_ + " -: give the name of a file; --json writes the record to stdout");
  if (!asked.has_filename())
    throw ResultError(
        fmt::format("result \"{}\": no file name; give a path such as run.json with {}",
                    asked.string(), flag_));
  refuse_other_than_file({asked, flag_});
  const fs::path path = followed(asked, flag_);
  std::error_code error;
  fs::create_directories(folder_of(path), error);
  if (error)
    refuse({path, flag_}, fmt::format("cannot create the folder {}", folder_of(path).string()),
           error.value());
  for (int number = 1; !lock_; ++number) {
    if (number > kMostWriters)
      throw ResultError(fmt::format("result {}: {} other writers hold it and its numbered names",
                                    path.string(), kMostWriters));
    path_ = numbered(path, number);
    refuse_other_than_file({path_, flag_});
    // A name that a concurrent writer was given holds its result; only the asked-for name is ever
    // replaced.
    if (number > 1 && fs::exists(path_, error)) continue;
    lock_ = try_lock({path_, flag_});
    if (number > 1 && fs::exists(path_, error)) lock_ = nullptr;
  }
  temporary_ = temporary_for(path_);
  unlink(temporary_.c_str());  // left by a writer that was killed
  // Not zeros: file systems that compress would find room for them.
  std::string reserve(reserved_bytes, '\0');
  for (std::size_t i = 0, x = 1; i < reserve.size(); ++i)
    reserve[i] = static_cast<char>((x = x * 6364136223846793005ULL + 1) >> 56);
  write_temporary(reserve, fmt::format("no room for {} kB", reserved_bytes / 1024));
  if (older == Older::kept) keep_older();
}

ResultFile::~ResultFile() {
  unlink(temporary_.c_str());
  if (!in_place_) forget_older();
}

/// Before anything is measured, so that it is known that it can be kept: under both names until the
/// result takes the place of one.
void ResultFile::keep_older() {
  const auto older = measurement_at(path_);
  if (!older) return;
  older_id_ = older->id;
  older_finished_ = older->finished;
  std::int64_t last = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_of(path_), error), end; !error && at != end;
       at.increment(error)) {
    const std::int64_t number = backup_number(path_, at->path());
    std::error_code ignored;
    // Of a command that was killed before it wrote anything.
    if (number > 0 && fs::equivalent(at->path(), path_, ignored)) kept_ = at->path();
    last = std::max(last, number);
  }
  for (int failed = kept_.empty() ? EEXIST : 0; failed != 0;) {
    kept_ = backup_of(path_, ++last);
    failed = give_second_name(path_, kept_, older->text);
    if (failed == 0 || failed == EEXIST) continue;
    unlink(temporary_.c_str());
    refuse({path_, flag_},
           fmt::format("the measurement that is there cannot be kept as {}", kept_.string()),
           failed);
  }
}

/// Takes back the second name, unless somebody has taken away the first.
void ResultFile::forget_older() {
  if (!kept_.empty() && access(path_.c_str(), F_OK) == 0) unlink(kept_.c_str());
  kept_.clear();
}

void ResultFile::continue_older() {
  if (!older_finished_ && !in_place_) forget_older();
}

void ResultFile::refuse_write(std::string_view what, int error) {
  unlink(temporary_.c_str());
  refuse({path_, flag_}, what, error);
}

/// Over what is reserved, where nothing was written yet. Its name is ours alone because we hold the
/// lock.
void ResultFile::write_temporary(std::string_view bytes, std::string_view what) {
  FileDescriptor file{open_own(temporary_, O_WRONLY)};
  if (file.fd < 0 && errno == ENOENT) {  // somebody has removed the folder meanwhile
    std::error_code ignored;
    fs::create_directories(folder_of(path_), ignored);
    file.fd = open_own(temporary_, O_WRONLY);
  }
  if (file.fd < 0)
    refuse({path_, flag_}, fmt::format("cannot create a file in {}", folder_of(path_).string()),
           errno);
  int error = write_whole(file.fd, bytes);
  if (error == 0 && ftruncate(file.fd, static_cast<off_t>(bytes.size())) != 0) error = errno;
  if (error == 0 && fsync(file.fd) != 0) error = errno;
  if (error != 0) refuse_write(what, error);
}

void ResultFile::put_in_place() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    refuse({path_, flag_}, "cannot be put in place", errno);
  sync_folder(folder_of(path_));
  if (!in_place_ && !kept_.empty())
    say_info(fmt::format("the measurement that was in {} is kept as {} (--overwrite keeps none)",
                         path_.string(), kept_.string()));
  in_place_ = true;
}

namespace {

/// Tells of a storage that does not answer, and keeps the text elsewhere meanwhile: whoever gives
/// up waiting finds it there.
class Patience {
 public:
  Patience(const fs::path& path, std::string_view text) {
    try {
      waiter_ = std::thread([this, path, text] { wait(path, text); });
    } catch (const std::system_error&) {  // no threads left: nobody hears of it
    }
  }
  ~Patience() {
    {
      const std::lock_guard lock(mutex_);
      written_ = true;
    }
    changed_.notify_all();
    if (waiter_.joinable()) waiter_.join();
    if (!copy_.empty()) unlink(copy_.c_str());
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  static constexpr std::chrono::seconds kSilence{5};

  void wait(const fs::path& path, std::string_view text) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kSilence, [&] { return written_; })) return;
    lock.unlock();
    const std::string kept = keep_copy(text);
    say_info(fmt::format("result {}: its storage has not answered for {} s; waiting for it{}",
                         path.string(), kSilence.count(),
                         kept.empty() ? "" : ", with a copy in " + kept));
  }

  std::string keep_copy(std::string_view text) noexcept {
    try {
      std::string copy = (temporary_folder() / "scalemark-result-XXXXXX").string();
      const FileDescriptor file{mkostemp(copy.data(), O_CLOEXEC)};
      if (file.fd < 0) return "";
      copy_ = copy;
      if (write_whole(file.fd, text) == 0) return copy_;
    } catch (const std::exception&) {
    }
    return "";
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool written_ = false;
  std::string copy_;
  std::thread waiter_;  // the last member: it uses the others
};

}  // namespace

void ResultFile::write_text(std::string_view text) {
  const Patience patience(path_, text);
  write_temporary(text, "cannot be written");
  put_in_place();
}

void ResultFile::write(const Json& record) {
  if (!in_place_ && !older_id_.empty() && record.value("id", Json()) == older_id_) forget_older();
  write_text(record_text(record));
}

void ResultFile::append(std::string_view part) {
  if (!parts_) {
    parts_ = std::make_unique<FileDescriptor>(open_own(temporary_, O_WRONLY | O_TRUNC));
    if (parts_->fd < 0) refuse_write("cannot be written", errno);
  }
  if (const int error = write_whole(parts_->fd, part); error != 0)
    refuse_write("cannot be written", error);
}

void ResultFile::finish() {
  append("");
  if (fsync(parts_->fd) != 0) refuse_write("cannot be written", errno);
  parts_ = nullptr;
  put_in_place();
}

Older older_of(const OutputSettings& settings) {
  return settings.overwrite ? Older::replaced : Older::kept;
}

std::unique_ptr<ResultFile> output_file(const OutputSettings& settings) {
  if (!settings.output) return nullptr;
  return std::make_unique<ResultFile>(*settings.output, ResultFile::kReservedBytes, "--output",
                                      older_of(settings));
}

void deliver(const Json& record, ResultFile* file, bool json) {
  std::exception_ptr failure;
  try {
    if (file) file->write(record);
  } catch (...) {
    failure = std::current_exception();
  }
  if (json) print_data(record_text(record));
  if (failure) std::rethrow_exception(failure);
}

}  // namespace scalemark
