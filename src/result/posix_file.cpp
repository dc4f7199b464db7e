// See posix_file.hpp.
#include "result/posix_file.hpp"

#include <unistd.h>

#include <cerrno>

#include "streams.hpp"

namespace scalemark {

FileDescriptor::~FileDescriptor() {
  if (fd >= 0) close(fd);
}

int write_all(int file, std::string_view bytes) {
  if (const int error = write_whole(file, bytes); error != 0) return error;
  return fsync(file) == 0 ? 0 : errno;
}

}  // namespace scalemark
