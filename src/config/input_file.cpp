// See input_file.hpp.
#include "config/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace scalemark {
namespace {

[[noreturn]] void refuse_with_errno(const char* what) {
  throw InputFault(errno == ENOENT || errno == ENOTDIR,
                   errno == ENOENT || errno == ENOTDIR
                       ? "no such file"
                       : fmt::format("{}: {}", what, std::strerror(errno)));
}

const char* name_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void refuse_size(std::size_t most_bytes) {
  throw InputFault(false, fmt::format("larger than {} bytes", most_bytes));
}

class OpenFile {
 public:
  /// Nonblocking: a pipe that nobody writes to must not hang the reader.
  explicit OpenFile(const std::filesystem::path& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    // A socket can't be opened at all.
    if (file_ < 0 && errno == ENXIO) throw InputFault(false, "a socket, not a regular file");
    if (file_ < 0) refuse_with_errno("cannot be opened");
  }
  ~OpenFile() { close(file_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void check(std::size_t most_bytes) const {
    struct stat there {};
    if (fstat(file_, &there) != 0) refuse_with_errno("cannot be read");
    if (!S_ISREG(there.st_mode))
      throw InputFault(false, fmt::format("{}, not a regular file", name_of(there.st_mode)));
    if (static_cast<std::size_t>(there.st_size) > most_bytes) refuse_size(most_bytes);
  }

  /// The size may be told wrong (/proc) or grow meanwhile.
  std::string text(std::size_t most_bytes) const {
    std::string text;
    std::array<char, 1 << 16> block;
    for (;;) {
      const ssize_t got = read(file_, block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_with_errno("cannot be read");
      if (got == 0) return text;
      text.append(block.data(), static_cast<std::size_t>(got));
      if (text.size() > most_bytes) refuse_size(most_bytes);
    }
  }

 private:
  int file_;
};

}  // namespace

std::string read_input_file(const std::filesystem::path& path, std::size_t most_bytes) {
  const OpenFile file(path);
  file.check(most_bytes);
  return file.text(most_bytes);
}

}  // namespace scalemark
