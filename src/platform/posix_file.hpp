// Files: bytes that are on disk before anything relies on them, descriptors that are closed.
#pragma once

#include <filesystem>
#include <string_view>

namespace scalemark {

/// Closed at the end of its life; negative: none.
struct FileDescriptor {
  int fd;
  explicit FileDescriptor(int open_file) : fd(open_file) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
};

/// Writes all bytes and waits until they are on disk. 0, or errno of what failed: a full disk may
/// show in either.
int write_all(int file, std::string_view bytes);

/// So that the names in it are on disk. Some network file systems refuse; what was renamed in it
/// has its name all the same.
void sync_folder(const std::filesystem::path& folder);

/// "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace scalemark
