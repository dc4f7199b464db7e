// Files: bytes that are on disk before anything relies on them, descriptors that are closed, locks,
// private folders, and how fast a folder takes a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct stat;

namespace scalemark {

/// Closes its descriptor at the end of its life. A negative number stands for none.
struct FileDescriptor {
  int fd;
  explicit FileDescriptor(int open_file) : fd(open_file) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
};

/// Opens a file of ours to write to it, and makes it where it is not there. Returns a negative
/// number and errno: where it is a link (ELOOP), no regular file, or planted (EPERM).
int open_own(const std::filesystem::path& path, int flags);

/// Returns whether another user may have put this file or link there so that we write over
/// something: `folder` is one of those that all may write to, such as /tmp, and the file is neither
/// ours nor of the owner of the folder. So does Linux judge (fs.protected_symlinks,
/// fs.protected_regular).
bool is_planted(const struct stat& file, const std::filesystem::path& folder);

/// Writes all bytes and waits until they are on disk. Returns 0, or errno of what failed. A full
/// disk may be reported by the write or by the wait.
int write_all(int file, std::string_view bytes);

/// Waits until the names in a folder are on disk. Some network file systems refuse this; a rename
/// there has taken effect all the same.
void sync_folder(const std::filesystem::path& folder);

/// Returns the folder of a path, "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

// Gives one scalemark process exclusive use of something on disk through a hidden file beside it.

/// Holds a lock during its lifetime and removes the file at the end. On a file system without flock
/// (Lustre, some NFS) only the process that created the file has the lock: the file of a killed
/// process remains there until somebody removes it, and two processes never hold it at once.
class FileLock {
 public:
  /// Returns null where another process holds the lock. Throws std::system_error where `file`
  /// cannot be created.
  static std::unique_ptr<FileLock> try_take(const std::filesystem::path& file);
  ~FileLock();
  /// Gives up the lock but leaves its file in place.
  static void leave(std::unique_ptr<FileLock> lock);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::filesystem::path file, int fd) : file_(std::move(file)), fd_(fd) {}
  std::filesystem::path file_;
  int fd_;
};

// Selects one of the ranks of a host to print what all of them would print before MPI is
// initialised.

/// Returns true for the first process of this launch and host that asks with this text, as long as
/// that process lives. Also returns true where it cannot be determined.
bool is_first_to_say(const std::string& what);

// Measures how fast the file system of a folder writes and reads a file.

/// The rates at which a file was written and read.
struct ScratchRates {
  std::int64_t bytes = 0;
  double write_bytes_per_second = 0;  ///< up to the end of fsync
  double read_bytes_per_second = 0;   ///< after the kernel was asked to drop the file's pages
};

/// Writes a file of about `bytes` (whole MiB) in `folder`, syncs it, reads it back and compares.
/// The file has no name once it is open, so that nothing remains however the process ends. Throws
/// EnvironmentError with the folder and the remedy where the file cannot be created, written or
/// read, or where the bytes read differ.
ScratchRates measure_scratch_file(const std::filesystem::path& folder, std::int64_t bytes);

// Provides a private folder, in the system's temporary folder or elsewhere.

/// Returns the system's temporary folder. Throws EnvironmentError, with the variable that names it,
/// where it is not there.
std::filesystem::path temporary_folder();

/// Creates a folder and removes it with all its content at the end of its life. It is locked
/// (flock) while its maker lives, where the file system supports that.
class TemporaryFolder {
 public:
  /// Throws EnvironmentError where the folder cannot be created.
  TemporaryFolder();
  /// Creates a hidden folder in `parent`, or in the system's temporary folder where that is not
  /// possible.
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

/// Returns a descriptor that holds the folder's lock until it is closed, or -1 where another
/// process holds the lock or it cannot be taken.
int lock_folder(const std::filesystem::path& folder);

/// Returns whether the name of the path is that of a private folder.
bool is_private_folder(const std::filesystem::path& path);

}  // namespace scalemark
