// Collects the noise evidence of runs and says what is notable.
#include "result/noise_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "platform/slots.hpp"

namespace scalemark {

void NoiseSummary::add_rank(const record::RankPlacement& rank) {
  const record::Binding& binding = rank.binding;
  const std::string where = fmt::format("rank {} on {} runs on CPUs {}", rank.rank, rank.host,
                                        rank.cpus.value_or("unknown"));
  if (binding.as_asked == false)
    misplaced_.insert(fmt::format("{}, which is not what was asked for ({})", where,
                                  rank.affinity_requested.value_or("unknown")));
  if (binding.near_gpu == false)
    misplaced_.insert(
        fmt::format("{}, which are not near its GPU {}", where, rank.gpu.value_or(0)));
  if (const auto cpus = parse_cpu_list(rank.cpus.value_or(""));
      cpus && !cpus->empty() && static_cast<std::int64_t>(cpus->size()) < rank.threads)
    misplaced_.insert(
        fmt::format("{} with {} threads, which take turns on them", where, rank.threads));
  if (binding.crosses_numa == true)
    misplaced_.insert(fmt::format("{}, which cross NUMA nodes {}", where,
                                  fmt::join(rank.numa.value_or({}), ", ")));
}

void NoiseSummary::add_noise(const record::Noise& noise, double wall_seconds) {
  ++runs_;
  if (noise.foreign && noise.foreign->notable()) {
    ++beside_others_;
    if (!most_foreign_ || noise.foreign->cpus > most_foreign_->cpus) most_foreign_ = *noise.foreign;
  }
  const double steal = noise.steal.value_or(0);
  most_steal_ = std::max(most_steal_, steal);
  if (steal > kNotableSteal) ++stolen_;
  const double throttled = noise.throttled.value_or(0);
  most_throttled_seconds_ = std::max(most_throttled_seconds_, throttled);
  if (throttled > kNotableThrottle * wall_seconds) ++throttled_;
  if (!noise.error_counters) return;
  for (const auto& [interface, count] : *noise.error_counters)
    if (count > 0) errors_[interface] += count;
}

std::vector<std::string> NoiseSummary::warnings() const {
  std::vector<std::string> list;
  const std::string of = runs_ == 1 ? "" : fmt::format(" of {}", runs_);
  const auto in_runs = [&](int count) {
    return runs_ == 1 ? std::string() : fmt::format(" in {}{} runs", count, of);
  };
  if (most_foreign_)
    list.push_back(fmt::format("{} of {} while this was measured{}", most_foreign_->words(),
                               most_foreign_->host, in_runs(beside_others_)));
  if (stolen_ > 0)
    list.push_back(fmt::format("the hypervisor took up to {:.1f} % of the CPU time (steal){}",
                               100 * most_steal_, in_runs(stolen_)));
  if (throttled_ > 0)
    list.push_back(
        fmt::format("a CPU quota stopped threads for up to {:.1f} s (cgroup throttling){}",
                    most_throttled_seconds_, in_runs(throttled_)));
  for (const auto& [interface, count] : errors_)
    list.push_back(
        fmt::format("network interface {} counted {} errors or drops", interface, count));
  list.insert(list.end(), misplaced_.begin(), misplaced_.end());
  return list;
}

}  // namespace scalemark
