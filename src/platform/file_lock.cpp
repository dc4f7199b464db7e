// See file_lock.hpp.
#include "platform/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace scalemark {
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

}  // namespace scalemark
