// See posix_file.hpp.
#include "result/posix_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace scalemark {

FileDescriptor::~FileDescriptor() {
  if (fd >= 0) close(fd);
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(file) == 0 ? 0 : errno;
}

}  // namespace scalemark
