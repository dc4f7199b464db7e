// Writes files and folders so that their content is on disk.
#include "platform/posix_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "error.hpp"
#include "measure/clock.hpp"
#include "streams.hpp"

namespace scalemark {

FileDescriptor::~FileDescriptor() {
  if (fd >= 0) close(fd);
}

bool is_planted(const struct stat& file, const std::filesystem::path& folder) {
  struct stat place {};
  if (stat(folder.c_str(), &place) != 0) return false;
  const bool shared = (place.st_mode & S_ISVTX) != 0 && (place.st_mode & (S_IWOTH | S_IWGRP)) != 0;
  return shared && file.st_uid != geteuid() && file.st_uid != place.st_uid;
}

int open_own(const std::filesystem::path& path, int flags) {
  const int file = open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (file < 0) return file;
  struct stat there {};
  if (fstat(file, &there) == 0 && S_ISREG(there.st_mode) && !is_planted(there, folder_of(path)))
    return file;
  close(file);
  errno = EPERM;
  return -1;
}

int write_all(int file, std::string_view bytes) {
  if (const int error = write_whole(file, bytes); error != 0) return error;
  return fsync(file) == 0 ? 0 : errno;
}

void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor directory{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.fd >= 0) fsync(directory.fd);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

namespace {

/// Returns whether the locked file is still the file of that name. The lock is removed together
/// with its file, so this must be checked after locking.
bool is_still_there(int fd, const std::filesystem::path& file) {
  struct stat ours {
  }, there{};
  return fstat(fd, &ours) == 0 && stat(file.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

}  // namespace

std::unique_ptr<FileLock> FileLock::try_take(const std::filesystem::path& file) {
  for (;;) {
    constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(file.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
    const bool made = fd >= 0;
    const bool exists = !made && errno == EEXIST;
    if (exists) fd = open(file.c_str(), kFlags);
    if (fd < 0) {
      const int error = errno;
      if (exists && error == ENOENT) continue;  // removed meanwhile
      if (error == EACCES && access(file.c_str(), F_OK) == 0)
        return nullptr;  // owned by another user
      throw std::system_error(error, std::generic_category(), file.string());
    }
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool supported = locked || errno == EWOULDBLOCK || errno == EINTR;
    if (is_still_there(fd, file) && (locked || (made && !supported)))
      return std::unique_ptr<FileLock>(new FileLock(file, fd));
    close(fd);
    if (!locked) return nullptr;
  }
}

void FileLock::leave(std::unique_ptr<FileLock> lock) {
  if (lock) lock->file_.clear();
}

FileLock::~FileLock() {
  if (!file_.empty()) unlink(file_.c_str());
  close(fd_);
}

namespace {

/// Returns a name that the ranks of one host and launch share: they have the same parent or the
/// same namespace.
std::string launch_name() {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID"})
    if (const char* value = std::getenv(name)) return value;
  return std::to_string(getppid());
}

}  // namespace

// An abstract socket is used, which the kernel removes with its process.
bool is_first_to_say(const std::string& what) {
  const std::string name =
      fmt::format("scalemark-says-{}-{:x}", launch_name(), std::hash<std::string>{}(what));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data() + name.size() - length, length);
  const int held = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // until this process ends
  return held < 0 ||
         bind(held, reinterpret_cast<const sockaddr*>(&address),
              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)) == 0 ||
         errno != EADDRINUSE;
}

namespace {

constexpr std::int64_t kBlock = 1 << 20;

[[noreturn]] void refuse(const std::filesystem::path& folder, const char* what, int error) {
  throw EnvironmentError(
      fmt::format("scratch file in {}: {}: {}; choose a folder with room with --scratch DIR",
                  folder.string(), what, std::strerror(error)));
}

struct NamelessFile {
  int fd = -1;
  explicit NamelessFile(const std::filesystem::path& folder) {
    std::string name = (folder / ".scalemark-scratch-XXXXXX").string();
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) refuse(folder, "cannot be made", errno);
    unlink(name.c_str());
  }
  ~NamelessFile() { close(fd); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
};

/// Fills a block with data that cannot be compressed and that differs in every block.
void fill(std::vector<std::uint64_t>& block, std::uint64_t number) {
  std::uint64_t x = number + 1;
  for (auto& word : block) word = x = x * 6364136223846793005ULL + 1442695040888963407ULL;
}

/// Moves all bytes with `move(fd, address, bytes)`, which is write or read. A result of 0 bytes is
/// an early end.
template <typename Move>
bool move_all(Move move, int fd, char* data, std::size_t left) {
  while (left > 0) {
    const ssize_t moved = move(fd, data, left);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = EIO;
    if (moved <= 0) return false;
    data += moved;
    left -= static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace

ScratchRates measure_scratch_file(const std::filesystem::path& folder, std::int64_t bytes) {
  const NamelessFile file(folder);
  const auto blocks = static_cast<std::uint64_t>(std::max<std::int64_t>(1, bytes / kBlock));
  std::vector<std::uint64_t> block(kBlock / 8), expected(kBlock / 8);
  auto* data = reinterpret_cast<char*>(block.data());
  double write_seconds = 0, read_seconds = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    fill(block, i);
    const double start = steady_seconds();
    if (!move_all(write, file.fd, data, kBlock)) refuse(folder, "cannot be written", errno);
    write_seconds += steady_seconds() - start;
  }
  const double start = steady_seconds();
  if (fsync(file.fd) != 0) refuse(folder, "cannot be synced", errno);
  write_seconds += steady_seconds() - start;
  posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
  if (lseek(file.fd, 0, SEEK_SET) != 0) refuse(folder, "cannot be read", errno);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    fill(expected, i);
    const double begin = steady_seconds();
    if (!move_all(read, file.fd, data, kBlock)) refuse(folder, "cannot be read", errno);
    read_seconds += steady_seconds() - begin;
    if (block != expected) refuse(folder, "other bytes came back than were written", EIO);
  }
  const auto all = static_cast<double>(blocks) * kBlock;
  return {static_cast<std::int64_t>(all), all / write_seconds, all / read_seconds};
}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& parent)
    : path_(make_in(parent)), lock_(lock_folder(path_)) {}

TemporaryFolder::TemporaryFolder() : path_(make_temporary()), lock_(lock_folder(path_)) {}

std::filesystem::path TemporaryFolder::make_in(const std::filesystem::path& parent) {
  std::error_code error;
  std::string path = (std::filesystem::absolute(parent, error) / ".scalemark-XXXXXX").string();
  return !error && mkdtemp(path.data()) ? std::filesystem::path(path) : make_temporary();
}

std::filesystem::path temporary_folder() {
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder;
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
    if (const char* value = std::getenv(name))
      throw EnvironmentError(
          fmt::format("{} is {}, which is no folder here: set it to one that exists, or unset it",
                      name, value));
  throw EnvironmentError("there is no folder /tmp: set TMPDIR to a folder that exists");
}

std::filesystem::path TemporaryFolder::make_temporary() {
  std::string path = (temporary_folder() / "scalemark-XXXXXX").string();
  if (!mkdtemp(path.data()))
    throw EnvironmentError(fmt::format("cannot make a folder {}: {}", path, std::strerror(errno)));
  return path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

int lock_folder(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

bool is_private_folder(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const std::string_view mark = name.starts_with('.') ? ".scalemark-" : "scalemark-";
  std::error_code error;
  return name.starts_with(mark) && name.size() == mark.size() + 6 &&
         std::filesystem::is_directory(std::filesystem::symlink_status(path, error));
}

}  // namespace scalemark
