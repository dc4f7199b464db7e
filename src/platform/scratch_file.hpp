// How fast a folder's file system takes and gives a file.
#pragma once

#include <cstdint>
#include <filesystem>

namespace scalemark {

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

}  // namespace scalemark
