// Samples the load by others on all hosts until it is low enough.
#include "session/wait_for_idle.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "measure/clock.hpp"
#include "result/foreign_load.hpp"
#include "result/run_record.hpp"
#include "train/signals.hpp"

namespace scalemark {
namespace {

constexpr std::chrono::seconds kLook{1};

/// Returns how much others use this host during one second in which the ranks sleep.
ForeignLoad look(const Session& session) {
  const NoiseSnapshot before = session.noise_now();
  std::this_thread::sleep_for(kLook);
  RankReport report;
  report.host = host_name();
  report.cpus_of_host = session.cpus_of_host();
  report.noise = noise_between(before, session.noise_now());
  const auto loads = foreign_loads({report});
  return loads.empty() ? ForeignLoad{} : loads.front();
}

}  // namespace

void wait_for_idle(Session& session, RankGroup& ranks) {
  const double limit = session.config().wait_for_idle;
  if (limit <= 0) return;
  const double begin = steady_seconds();
  for (bool told = false;; told = true) {
    ranks.watchdog().enter("wait for an idle machine");
    const ForeignLoad load = look(session);
    const bool late = steady_seconds() - begin >= limit;
    const auto sums =
        ranks.all_sum({load.notable() ? 1. : 0., late ? 1. : 0., stop_requested() ? 1. : 0.});
    if (sums[0] == 0 || sums[2] > 0) return;
    const std::string who = load.notable() ? load.words() : "other hosts are used by others";
    if (sums[1] > 0)
      return session.warn(fmt::format(
          "the machine did not become idle in {:g} s (--wait_for_idle): {}", limit, who));
    if (!told) session.say(fmt::format("waiting up to {:g} s for an idle machine: {}", limit, who));
  }
}

}  // namespace scalemark
