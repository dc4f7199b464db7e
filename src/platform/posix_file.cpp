// See posix_file.hpp.
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
#include <system_error>

#include "streams.hpp"

namespace scalemark {

FileDescriptor::~FileDescriptor() {
  if (fd >= 0) close(fd);
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

/// The lock goes together with its file, so after locking it must still be the file of that name.
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
      if (exists && error == ENOENT) continue;                                 // removed meanwhile
      if (error == EACCES && access(file.c_str(), F_OK) == 0) return nullptr;  // another user's
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

/// Ranks of a host and a launch have the same parent or the same namespace.
std::string launch_name() {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID"})
    if (const char* value = std::getenv(name)) return value;
  return std::to_string(getppid());
}

}  // namespace

// An abstract socket, which the kernel forgets with its process.
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

}  // namespace scalemark
