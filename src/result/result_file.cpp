// Writing a result so that no reader sees half a file, no writer overwrites another, and nothing is
// measured for nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>

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
  if (access(asked.path.c_str(), W_OK) != 0)
    refuse(asked, "the file that is there may not be replaced", errno);
}
}  // namespace

std::string record_text(const Json& record) {
  return record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ResultFile::ResultFile(const fs::path& asked, std::size_t reserved_bytes, std::string flag)
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
}

ResultFile::~ResultFile() { unlink(temporary_.c_str()); }

void ResultFile::refuse_write(std::string_view what, int error) {
  unlink(temporary_.c_str());
  refuse({path_, flag_}, what, error);
}

/// Over what is reserved, where nothing was written yet. Its name is ours alone because we hold the
/// lock.
void ResultFile::write_temporary(std::string_view bytes, std::string_view what) {
  const FileDescriptor file{
      open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)};
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
}

void ResultFile::write_text(std::string_view text) {
  write_temporary(text, "cannot be written");
  put_in_place();
}

void ResultFile::append(std::string_view part) {
  if (!parts_) {
    parts_ = std::make_unique<FileDescriptor>(
        open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
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
