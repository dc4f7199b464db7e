// A private folder in the system's temporary one.
#pragma once

#include <filesystem>

namespace scalemark {

/// Gone with the object, and all that lies in it.
class TemporaryFolder {
 public:
  /// Throws EnvironmentError.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace scalemark
