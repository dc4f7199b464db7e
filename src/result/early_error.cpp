// Prints errors of ranks before MPI is up, each message once on a host.
#include "result/early_error.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "result/handover.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using std::chrono::milliseconds;

/// Rank 0 speaks first, then the ranks of its host: mostly the others would say the same, and its
/// end ends them.
constexpr milliseconds kAfterRank0{200}, kAfterItsHost{1500}, kBeforeTheEnd{500};

}  // namespace

void say_error_before_mpi(ExitCode code, const std::string& what) {
  const int rank = rank_before_mpi();
  if (rank > 0)
    std::this_thread::sleep_for(rank == announced_local_rank() ? kAfterRank0 : kAfterItsHost);
  if (is_first_to_say(what)) {
    const std::string named =
        rank > 0 ? fmt::format("rank {} on {}: {}", rank, host_name(), what) : what;
    say_error(named);
    Handover(process_environment(), rank == 0).publish_abort({static_cast<int>(code), named});
  }
  if (!is_announced_alone()) std::this_thread::sleep_for(kBeforeTheEnd);
}

}  // namespace scalemark
