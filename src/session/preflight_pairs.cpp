// Measures the link between every two hosts, in rounds of disjoint pairs.
#include <unistd.h>

#include "comm/communication_probe.hpp"
#include "platform/platform.hpp"
#include "record/wire.hpp"
#include "session/preflight_measure.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kPairBytes = 4 << 20;  // about what one bucket of gradients sends
constexpr double kSecondsOfPair = 0.05;

struct PairsOfRank {
  std::vector<record::HostPair> pairs;
  static void describe(Fields& fields) { fields.add("pairs", &PairsOfRank::pairs); }
};

}  // namespace

std::optional<std::vector<record::HostPair>> measure_pairs(Session& session) {
  RankGroup& world = session.world;
  std::optional<RankGroup> leaders = world.split(world.local_rank() == 0 ? 0 : -1);
  const auto hosts = static_cast<int>(world.all_sum({leaders ? 1. : 0.}).front());
  world.watchdog().enter("pairs of hosts");
  const std::vector<std::string> names =
      leaders ? leaders->all_gather(host_name()) : std::vector<std::string>();
  PairsOfRank mine;
  for (int round = 0; round < pair_rounds(hosts); ++round) {
    leave_if_stopped(session);  // ranks that do not lead a host wait here in every round
    world.watchdog().enter("pairs of hosts");
    if (!leaders) continue;
    for (const PairTiming& pair : measure_pair_round(*leaders, round, kPairBytes, kSecondsOfPair))
      mine.pairs.push_back({{names.at(static_cast<std::size_t>(pair.first)),
                             names.at(static_cast<std::size_t>(pair.second))},
                            kPairBytes,
                            pair.latency_seconds,
                            pair.bytes_per_second});
  }
  if (!leaders || hosts < 2) return std::nullopt;
  std::vector<record::HostPair> pairs;
  for (const std::string& text : leaders->gather(to_wire(mine))) {
    const auto of_leader = from_wire<PairsOfRank>(text);
    pairs.insert(pairs.end(), of_leader.pairs.begin(), of_leader.pairs.end());
  }
  if (world.rank() != 0) return std::nullopt;
  return pairs;
}

}  // namespace scalemark
