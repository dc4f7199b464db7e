// See companions.hpp.
#include "launch/companions.hpp"

#include <fmt/format.h>

#include "error.hpp"

namespace scalemark {
namespace fs = std::filesystem;

fs::path installed_share(const fs::path& program) {
  return program.parent_path().parent_path() / "share" / "scalemark";
}

fs::path find_companion(const fs::path& program, const fs::path& within) {
  std::error_code error;
  const fs::path installed = installed_share(program) / within;
  if (fs::exists(installed, error)) return installed;
  for (fs::path up = program.parent_path(); up != up.parent_path(); up = up.parent_path())
    if (fs::exists(up / within, error)) return up / within;
  throw EnvironmentError(
      fmt::format("scalemark: {} is missing, and no folder above {} has {}: install again",
                  installed.string(), program.string(), within.string()));
}

}  // namespace scalemark
