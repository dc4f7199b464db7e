// See pair_in_turns.hpp.
#include "launch/pair_in_turns.hpp"

#include <fmt/format.h>

#include "launch/placement.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "rendezvous/turns.hpp"

namespace scalemark {

std::optional<std::string> why_not_in_turns(const SweepPlan& plan, const SweepPlan& new_plan,
                                            const std::array<PointLauncher, 2>& sides) {
  if (plan.command != Command::run) return "only runs take turns";
  for (const PointLauncher& side : sides)
    if (!side.build().takes_turns)
      return fmt::format("build {} is too old for turns", side.build().revision);
  for (const SweepPoint& point : plan.points)
    if (find_resources(point.config.device, plan.hostfile ? plan.hostfile : point.config.hostfile,
                       process_environment())
            .elsewhere)
      return "ranks on other hosts do not take turns";
  for (const SweepPlan* side : {&plan, &new_plan})
    for (const SweepPoint& point : side->points)
      if (point.launch.ranks > 1 && point.config.overlap == Overlap::step)
        return "what --overlap step leaves on its way would go on in the other one's turns";
  return std::nullopt;
}

bool launch_in_turns(const SweepPlan& plan, const std::array<PointLauncher, 2>& sides,
                     const std::array<Journal*, 2>& journals, std::size_t point,
                     std::int64_t repeat, std::size_t first) {
  const std::array<std::size_t, 2> order{first, 1 - first};
  const std::array handovers{HandoverFolder(sides[order[0]].folder()),
                             HandoverFolder(sides[order[1]].folder())};
  const std::array<TemporaryFolder, 2> local;  // for sockets: not on a network file system
  const int ranks = plan.points[point].launch.ranks;
  TurnGiver giver(local[0].path(), {ranks, ranks});
  std::vector<Job> jobs;
  std::vector<JournalEntry> entries;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const PointLauncher& side = sides[order[i]];
    entries.push_back(side.begin(point, repeat));
    jobs.push_back(side.job_of(point, repeat, handovers[i]));
    jobs.back().environment = session_folder(local[i].path());
    jobs.back().environment["SMK_INTERNAL_TURNS"] = giver.address(i);
  }
  Supervision how = sides[0].supervision(point);
  how.end_seconds = 0;  // one that waits for its turn would wait for ever
  how.inputs = [&] { return giver.inputs(); };
  how.on_wake = [&] { giver.update(); };
  const double start = steady_seconds();
  JobEnds ends = run_jobs(jobs, how);
  const double seconds = steady_seconds() - start;

  bool stopped = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (ends.first_failed && *ends.first_failed != i) continue;
    const PointLauncher& side = sides[order[i]];
    JobEnd& end = ends.jobs[i];
    if (end.code == ExitCode::ok && giver.turns(i) == 0) {
      end = {ExitCode::environment,
             "its ranks did not take turns: SMK_INTERNAL_TURNS has not reached them; --alternate "
             "launches does without"};
      side.discard_record(point, repeat);
    }
    side.finish(*journals[order[i]], entries[i], seconds, point, end);
    stopped = stopped || end.stopped;
  }
  return stopped;
}

}  // namespace scalemark
