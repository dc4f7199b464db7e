// See temporary_folder.hpp.
#include "platform/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "error.hpp"

namespace scalemark {

TemporaryFolder::TemporaryFolder(const std::filesystem::path& parent)
    : path_(make_in(parent)), lock_(lock_folder(path_)) {}

TemporaryFolder::TemporaryFolder() : path_(make_temporary()), lock_(lock_folder(path_)) {}

std::filesystem::path TemporaryFolder::make_in(const std::filesystem::path& parent) {
  std::error_code error;
  std::string path = (std::filesystem::absolute(parent, error) / ".scalemark-XXXXXX").string();
  return !error && mkdtemp(path.data()) ? std::filesystem::path(path) : make_temporary();
}

std::filesystem::path TemporaryFolder::make_temporary() {
  std::string path = (std::filesystem::temp_directory_path() / "scalemark-XXXXXX").string();
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
