// Exclusive use of something on disk among processes of ours, by a hidden file beside it.
#pragma once

#include <filesystem>
#include <memory>

namespace scalemark {

/// Held while it lives; the file goes with it. On a file system without flock (Lustre, some NFS)
/// only the one who made the file has the lock: what a killed process left then stands until
/// somebody removes it, and two never hold it.
class FileLock {
 public:
  /// Null where another holds it. Throws std::system_error where `file` cannot be made.
  static std::unique_ptr<FileLock> try_take(const std::filesystem::path& file);
  ~FileLock();
  /// The file stays where it is, without a holder.
  static void leave(std::unique_ptr<FileLock> lock);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::filesystem::path file, int fd) : file_(std::move(file)), fd_(fd) {}
  std::filesystem::path file_;
  int fd_;
};

}  // namespace scalemark
