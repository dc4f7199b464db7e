// Calls MPI_Init. Open MPI ends the process by exit() or by _exit(), so both are intercepted while
// it starts.
#include "comm/mpi_start.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "comm/abort.hpp"
#include "comm/mpi.hpp"
#include "error.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr rlim_t kFewestDescriptors = 32;   // a single rank needs 26
constexpr rlim_t kManyDescriptors = 65536;  // for a connection to each peer

std::atomic<bool> is_starting{false};

/// Returns the exit status that replaces `status`.
int status_of_start(int status) {
  if (!is_starting.exchange(false) || abort_under_way()) return status;
  const char* const what =
      "MPI could not be started: its own message is above. Look at OMPI_MCA_* and PMIX_* "
      "variables, at an mpirun of another MPI, and at room in TMPDIR and /dev/shm.";
  if (is_first_to_say(what)) say_error(what);
  std::fflush(stderr);
  return static_cast<int>(ExitCode::environment);
}

extern "C" void end_of_start() {
  if (is_starting) _exit(1);
}

void want_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kManyDescriptors));
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < kFewestDescriptors)
    throw EnvironmentError(fmt::format(
        "only {} open files are allowed, and MPI needs {} or more: raise the limit (ulimit -n)",
        limit.rlim_cur, kFewestDescriptors));
}

}  // namespace

bool start_mpi() {
  want_descriptors();
  const auto hint = launcher_hint(process_environment());
  if (hint && hint->tasks > 1) refuse_too_small_for_ranks();
  std::atexit(end_of_start);
  is_starting = true;
  int provided = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  is_starting = false;
  if (code != MPI_SUCCESS)
    throw EnvironmentError("MPI_Init_thread failed: see Open MPI's message above");
  return provided >= MPI_THREAD_SERIALIZED;
}

}  // namespace scalemark

/// Replaces the _exit of the C library, also for libraries.
extern "C" [[noreturn]] void _exit(int status) {
  const int code = scalemark::status_of_start(status);
  while (true) syscall(SYS_exit_group, code);
}
