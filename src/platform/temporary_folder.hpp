// A private folder, in the system's temporary one or elsewhere.
#pragma once

#include <filesystem>

namespace scalemark {

/// Gone with the object, and all that lies in it.
class TemporaryFolder {
 public:
  /// Throws EnvironmentError.
  TemporaryFolder();
  /// A hidden one in `parent`, or in the system's temporary folder where that can't be had.
  explicit TemporaryFolder(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  static std::filesystem::path make_temporary();

  std::filesystem::path path_;
};

}  // namespace scalemark
