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

std::string kib(rlim_t bytes) { return fmt::format("{} KiB", static_cast<double>(bytes) / 1024); }

std::string limit_words() { return "the file size limit (ulimit -f) is " + kib(limit()); }

}  // namespace

std::string write_error_words(int error) {
  if (error != EFBIG || limit() == RLIM_INFINITY) return std::strerror(error);
  return fmt::format("{}, since {}: raise it", std::strerror(error), limit_words());
}

void refuse_too_small_for_ranks() {
  if (limit() >= kSharedBytes) return;
  throw ResultError(fmt::format("{}, and ranks, which share memory in files, need {}: raise it",
                                limit_words(), kib(kSharedBytes)));
}

}  // namespace scalemark
