// Files: bytes that are on disk before anything relies on them, descriptors that are closed, locks,
// private folders, and how fast a folder takes a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
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

// Exclusive use of something on disk among processes of ours, by a hidden file beside it.

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

// One voice for the ranks of a host that have the same to say before MPI is up.

/// True for the first process of this launch and host that asks with these words, as long as it
/// lives; and where nobody can know.
bool is_first_to_say(const std::string& what);

// How fast a folder's file system takes and gives a file.

struct ScratchRates {
  std::int64_t bytes = 0;
  double write_bytes_per_second = 0;  ///< to the end of fsync
  double read_bytes_per_second = 0;   ///< after the kernel was asked to drop the file's pages
};

/// Writes a file of about `bytes` (whole MiB) in `folder`, syncs it, reads it back and compares.
/// The file has no name once it is open, so that nothing stays whatever ends the process. Throws
/// EnvironmentError with the folder and the remedy where it can't be made, written or read, or
/// where other bytes come back.
ScratchRates measure_scratch_file(const std::filesystem::path& folder, std::int64_t bytes);

// A private folder, in the system's temporary one or elsewhere.

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
