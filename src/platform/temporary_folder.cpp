// See temporary_folder.hpp.
#include "platform/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "error.hpp"

namespace scalemark {

TemporaryFolder::TemporaryFolder(const std::filesystem::path& parent) {
  std::error_code error;
  std::string path = (std::filesystem::absolute(parent, error) / ".scalemark-XXXXXX").string();
  path_ = !error && mkdtemp(path.data()) ? std::filesystem::path(path) : make_temporary();
}

TemporaryFolder::TemporaryFolder() : path_(make_temporary()) {}

std::filesystem::path TemporaryFolder::make_temporary() {
  std::string path = (std::filesystem::temp_directory_path() / "scalemark-XXXXXX").string();
  if (!mkdtemp(path.data()))
    throw EnvironmentError(fmt::format("cannot make a folder {}: {}", path, std::strerror(errno)));
  return path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace scalemark
