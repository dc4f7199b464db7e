// See posix_file.hpp.
#include "platform/posix_file.hpp"

#include <fcntl.h>
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

void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor directory{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.fd >= 0) fsync(directory.fd);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace scalemark
