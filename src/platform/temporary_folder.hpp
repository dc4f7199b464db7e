// A private folder, in the system's temporary one or elsewhere.
#pragma once

#include <filesystem>

namespace scalemark {

/// Gone with the object, and all that lies in it. While its maker lives, it is locked (flock),
/// where the file system can.
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
  static std::filesystem::path make_in(const std::filesystem::path& parent);
  static std::filesystem::path make_temporary();

  std::filesystem::path path_;
  int lock_;
};

/// A descriptor that holds the folder's lock until it is closed; -1 where another holds it, or
/// nobody can.
int lock_folder(const std::filesystem::path& folder);

/// By its name.
bool is_private_folder(const std::filesystem::path& path);

}  // namespace scalemark
