// See binding.hpp.
#include "analysis/binding.hpp"

#include <algorithm>

namespace scalemark {
namespace {

bool share_a_cpu(const RankPlace& a, const RankPlace& b) {
  return a.host == b.host && std::ranges::any_of(a.cpus, [&](int cpu) {
           return std::ranges::find(b.cpus, cpu) != b.cpus.end();
         });
}

/// Open MPI and Slurm say "none", Slurm also "no".
bool asks_for_binding(const std::string& requested) {
  return requested != "none" && requested != "no" && !requested.starts_with("none:");
}

}  // namespace

std::vector<BindingVerdict> judge_binding(const std::vector<RankPlace>& places) {
  std::vector<BindingVerdict> verdicts;
  for (const RankPlace& place : places) {
    BindingVerdict verdict;
    bool alone = true;
    for (const RankPlace& other : places) {
      if (other.rank == place.rank) continue;
      alone = alone && other.host != place.host;
      if (share_a_cpu(place, other)) verdict.overlaps_with.push_back(other.rank);
    }
    if (!place.requested.empty() && !place.cpus.empty() && place.cpus_of_host > 0) {
      const bool everywhere = static_cast<int>(place.cpus.size()) >= place.cpus_of_host;
      verdict.as_asked = !asks_for_binding(place.requested) || alone || !everywhere;
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace scalemark
