// See temporary_folder.hpp.
#include "platform/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "error.hpp"

namespace scalemark {

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "scalemark-XXXXXX").string();
  if (!mkdtemp(path.data()))
    throw EnvironmentError(fmt::format("cannot make a folder {}: {}", path, std::strerror(errno)));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace scalemark
