// Writing a result so that no reader sees half a file, no writer overwrites another, and nothing is
// measured for nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

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
