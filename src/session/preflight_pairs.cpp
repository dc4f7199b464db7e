// See preflight_measure.hpp.
#include <unistd.h>

#include "comm/communication_probe.hpp"
#include "platform/platform.hpp"
#include "session/preflight_measure.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kPairBytes = 4 << 20;  // what a bucket of gradients sends at a time
constexpr double kSecondsOfPair = 0.05;

}  // namespace

Json measure_pairs(Session& session) {
  RankGroup& world = session.world;
  std::optional<RankGroup> leaders = world.split(world.local_rank() == 0 ? 0 : -1);
  const auto hosts = static_cast<int>(world.all_sum({leaders ? 1. : 0.}).front());
  Json mine = Json::array();
  for (int round = 0; round < pair_rounds(hosts); ++round) {
    leave_if_stopped(session);  // those who do not lead wait here, a round at a time
    world.watchdog().enter("pairs of hosts");
    if (!leaders) continue;
    for (const PairTiming& pair : measure_pair_round(*leaders, round, kPairBytes, kSecondsOfPair))
      mine.push_back({{"hosts", {pair.first, pair.second}},
                      {"bytes", kPairBytes},
                      {"latency_seconds", pair.latency_seconds},
                      {"bytes_per_second", pair.bytes_per_second}});
  }
  if (!leaders || hosts < 2) return nullptr;
  const std::vector<std::string> names = leaders->gather(host_name());
  Json pairs = Json::array();
  for (const std::string& of_leader : leaders->gather(mine.dump()))
    for (Json pair : Json::parse(of_leader)) {
      for (Json& host : pair["hosts"]) host = names[host.get<std::size_t>()];
      pairs.push_back(std::move(pair));
    }
  return world.rank() == 0 ? pairs : Json();
}

}  // namespace scalemark
