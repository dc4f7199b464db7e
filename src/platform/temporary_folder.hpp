// A private folder, in the system's temporary one or elsewhere.
#pragma once

#include <filesystem>
#include <memory>

#include "platform/file_lock.hpp"

namespace scalemark {

/// Gone with the object, and all that lies in it. Its lock tells whether its maker lives.
class TemporaryFolder {
 public:
  static constexpr const char* kLock = ".lock";  ///< a file in it

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
  void lock();

  std::filesystem::path path_;
  std::unique_ptr<FileLock> lock_;
};

/// By its name.
bool is_private_folder(const std::filesystem::path& path);

}  // namespace scalemark
