// See scratch_file.hpp.
#include "platform/scratch_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "error.hpp"
#include "measure/clock.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kBlock = 1 << 20;

[[noreturn]] void refuse(const std::filesystem::path& folder, const char* what, int error) {
  throw EnvironmentError(
      fmt::format("scratch file in {}: {}: {}; choose a folder with room with --scratch DIR",
                  folder.string(), what, std::strerror(error)));
}

struct NamelessFile {
  int fd = -1;
  explicit NamelessFile(const std::filesystem::path& folder) {
    std::string name = (folder / ".scalemark-scratch-XXXXXX").string();
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) refuse(folder, "cannot be made", errno);
    unlink(name.c_str());
  }
  ~NamelessFile() { close(fd); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
};

/// Not compressible, and different in every block.
void fill(std::vector<std::uint64_t>& block, std::uint64_t number) {
  std::uint64_t x = number + 1;
  for (auto& word : block) word = x = x * 6364136223846793005ULL + 1442695040888963407ULL;
}

/// `move(fd, address, bytes)` is write or read; 0 bytes moved is an early end.
template <typename Move>
bool move_all(Move move, int fd, char* data, std::size_t left) {
  while (left > 0) {
    const ssize_t moved = move(fd, data, left);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = EIO;
    if (moved <= 0) return false;
    data += moved;
    left -= static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace

ScratchRates measure_scratch_file(const std::filesystem::path& folder, std::int64_t bytes) {
  const NamelessFile file(folder);
  const auto blocks = static_cast<std::uint64_t>(std::max<std::int64_t>(1, bytes / kBlock));
  std::vector<std::uint64_t> block(kBlock / 8), expected(kBlock / 8);
  auto* data = reinterpret_cast<char*>(block.data());
  double write_seconds = 0, read_seconds = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    fill(block, i);
    const double start = steady_seconds();
    if (!move_all(write, file.fd, data, kBlock)) refuse(folder, "cannot be written", errno);
    write_seconds += steady_seconds() - start;
  }
  const double start = steady_seconds();
  if (fsync(file.fd) != 0) refuse(folder, "cannot be synced", errno);
  write_seconds += steady_seconds() - start;
  posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
  if (lseek(file.fd, 0, SEEK_SET) != 0) refuse(folder, "cannot be read", errno);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    fill(expected, i);
    const double begin = steady_seconds();
    if (!move_all(read, file.fd, data, kBlock)) refuse(folder, "cannot be read", errno);
    read_seconds += steady_seconds() - begin;
    if (block != expected) refuse(folder, "other bytes came back than were written", EIO);
  }
  const auto all = static_cast<double>(blocks) * kBlock;
  return {static_cast<std::int64_t>(all), all / write_seconds, all / read_seconds};
}

}  // namespace scalemark
