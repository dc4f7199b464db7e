// Writing a result so that no reader sees half a file, no writer overwrites another, and nothing is
// measured for nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "error.hpp"
#include "result/posix_file.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Space that must be there before a run starts: records of long runs reach some hundred kB.
constexpr std::size_t kProbeBytes = 1 << 20;
constexpr int kMostWriters = 1000;

std::string_view remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose another folder with --output";
    case EROFS:
      return "the file system is read-only: choose another folder with --output";
    case EACCES:
    case EPERM:
      return "choose a folder that you may write to with --output";
    default:
      return "choose another path with --output";
  }
}

[[noreturn]] void refuse(const fs::path& path, std::string_view what, int error) {
  throw ResultError(fmt::format("result {}: {}: {}; {}", path.string(), what, std::strerror(error),
                                remedy(error)));
}

/// Removes a temporary file unless it was renamed away.
struct Temporary {
  fs::path path;
  ~Temporary() {
    if (!path.empty()) unlink(path.c_str());
  }
};

void sync_folder(const fs::path& folder) {
  const FileDescriptor directory{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // Some network file systems refuse to sync a folder; the rename itself has happened.
  if (directory.fd >= 0) fsync(directory.fd);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Hidden, beside the result (rename works only within a file system), with a known pattern so that
/// leftovers are found.
fs::path beside(const fs::path& path, std::string_view suffix) {
  return folder_of(path) / fmt::format(".{}{}", path.filename().string(), suffix);
}
fs::path temporary_for(const fs::path& path) { return beside(path, ".tmp"); }

/// Writes a new file; its name is ours alone because we hold the lock. Throws and leaves nothing
/// where it fails.
Temporary write_temporary(const fs::path& path, std::string_view bytes, std::string_view what) {
  Temporary temporary{temporary_for(path)};
  unlink(temporary.path.c_str());  // left by a writer that was killed
  const FileDescriptor file{
      open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.fd < 0) {
    const int error = errno;
    temporary.path.clear();
    refuse(path, fmt::format("cannot create a file in {}", folder_of(path).string()), error);
  }
  if (const int error = write_all(file.fd, bytes); error != 0) refuse(path, what, error);
  return temporary;
}

enum class Lock { taken, held_by_another };

/// Takes the lock file of `path`. It is removed together with the lock, so after locking it must
/// still be the same file. On a file system without flock (Lustre, some NFS) only the one who made
/// the file has it: a file left by a killed writer then costs the next one its name, never a
/// result.
Lock try_lock(const fs::path& path, const fs::path& lock_path, int& fd) {
  for (;;) {
    constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    fd = open(lock_path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
    const bool made = fd >= 0;
    if (!made && errno == EEXIST) fd = open(lock_path.c_str(), kFlags);
    if (fd < 0 && errno == ENOENT && fs::exists(folder_of(path))) continue;  // removed meanwhile
    if (fd < 0 && errno == EACCES && access(lock_path.c_str(), F_OK) == 0)
      return Lock::held_by_another;  // another user's
    if (fd < 0)
      refuse(path, fmt::format("cannot create a file in {}", folder_of(path).string()), errno);
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool supported = locked || errno == EWOULDBLOCK || errno == EINTR;
    struct stat ours {
    }, there{};
    const bool same = fstat(fd, &ours) == 0 && stat(lock_path.c_str(), &there) == 0 &&
                      ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    if (same && (locked || (made && !supported))) return Lock::taken;
    close(fd);
    fd = -1;
    if (!locked) return Lock::held_by_another;
  }
}

/// name.json, name.2.json, name.3.json ...
fs::path numbered(const fs::path& path, int number) {
  if (number == 1) return path;
  fs::path named = path;
  return named.replace_filename(
      fmt::format("{}.{}{}", path.stem().string(), number, path.extension().string()));
}

void refuse_other_than_file(const fs::path& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) return;
  if (S_ISDIR(there.st_mode)) refuse(path, "there is a folder of this name", EISDIR);
  if (!S_ISREG(there.st_mode))
    throw ResultError(fmt::format(
        "result {}: not a regular file; choose another path with --output", path.string()));
  if (access(path.c_str(), W_OK) != 0)
    refuse(path, "the file that is there may not be replaced", errno);
}
}  // namespace

std::string record_text(const Json& record) {
  return record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ResultFile::ResultFile(const fs::path& path) {
  if (!path.has_filename())
    throw ResultError(fmt::format(
        "result \"{}\": no file name; give a path such as run.json with --output", path.string()));
  std::error_code error;
  fs::create_directories(folder_of(path), error);
  if (error)
    refuse(path, fmt::format("cannot create the folder {}", folder_of(path).string()),
           error.value());
  for (int number = 1; lock_ < 0; ++number) {
    if (number > kMostWriters)
      throw ResultError(fmt::format("result {}: {} other writers hold it and its numbered names",
                                    path.string(), kMostWriters));
    path_ = numbered(path, number);
    lock_path_ = beside(path_, ".lock");
    refuse_other_than_file(path_);
    // A name that a concurrent writer was given holds its result; only the asked-for name is ever
    // replaced.
    if (number > 1 && fs::exists(path_, error)) continue;
    if (try_lock(path_, lock_path_, lock_) == Lock::taken && number > 1 && fs::exists(path_, error))
      release();
  }
  try {
    // Not zeros: file systems that compress would find room for them.
    std::string probe(kProbeBytes, '\0');
    for (std::size_t i = 0, x = 1; i < probe.size(); ++i)
      probe[i] = static_cast<char>((x = x * 6364136223846793005ULL + 1) >> 56);
    write_temporary(path_, probe, fmt::format("no room for {} kB", kProbeBytes / 1024));
  } catch (...) {
    release();
    throw;
  }
}

ResultFile::~ResultFile() { release(); }

void ResultFile::release() noexcept {
  if (lock_ < 0) return;
  unlink(lock_path_.c_str());
  close(lock_);
  lock_ = -1;
}

void ResultFile::write(const Json& record) {
  Temporary temporary = write_temporary(path_, record_text(record), "cannot be written");
  if (rename(temporary.path.c_str(), path_.c_str()) != 0)
    refuse(path_, "cannot be put in place", errno);
  temporary.path.clear();
  sync_folder(folder_of(path_));
}

}  // namespace scalemark
