// See file_size_limit.hpp.
#include "file_size_limit.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "error.hpp"

namespace scalemark {
namespace {

/// Open MPI 4: 4 MiB and a page each for btl_vader_segment_size and for what PMIx stores.
constexpr rlim_t kSharedBytes = 5 << 20;

rlim_t limit() {
  rlimit found{};
  return getrlimit(RLIMIT_FSIZE, &found) == 0 ? found.rlim_cur : RLIM_INFINITY;
}

std::string limit_words() {
  return fmt::format("the file size limit (ulimit -f) is {:.6g} KiB",
                     static_cast<double>(limit()) / 1024);
}

}  // namespace

std::string write_error_words(int error) {
  if (error != EFBIG || limit() == RLIM_INFINITY) return std::strerror(error);
  return fmt::format("{}, since {}: raise it", std::strerror(error), limit_words());
}

void refuse_too_small_for_ranks() {
  if (limit() >= kSharedBytes) return;
  throw ResultError(fmt::format("{}, and ranks share memory in files of up to {} KiB: raise it",
                                limit_words(), kSharedBytes / 1024));
}

}  // namespace scalemark
