// Collects the noise evidence of runs and says what is notable.
#include "result/noise_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace scalemark {
namespace {

double number_or_zero(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Ranks whose binding did not come about, or is a poor one.
std::set<std::string> misplaced_ranks(const Json& record) {
  std::set<std::string> lines;
  const auto ranks = record.find("ranks");
  if (ranks == record.end() || !ranks->is_array()) return lines;
  for (const Json& rank : *ranks) {
    const auto binding = rank.find("binding");
    if (binding == rank.end() || !binding->is_object()) continue;
    const std::string where =
        fmt::format("rank {} on {} runs on CPUs {}", plain_text(rank.at("rank")),
                    plain_text(rank.at("host")), plain_text(rank.at("cpus")));
    if (binding->at("as_asked") == false)
      lines.insert(fmt::format("{}, which is not what was asked for ({})", where,
                               plain_text(rank.at("affinity_requested"))));
    if (binding->at("near_gpu") == false)
      lines.insert(
          fmt::format("{}, which are not near its GPU {}", where, plain_text(rank.at("gpu"))));
    if (binding->value("crosses_numa", Json()) == true)  // a null of older records
      lines.insert(fmt::format("{}, which cross NUMA nodes {}", where,
                               fmt::join(rank.at("numa").get<std::vector<int>>(), ", ")));
  }
  return lines;
}

}  // namespace

void NoiseSummary::add(const Json& run_record) {
  ++runs_;
  misplaced_.merge(misplaced_ranks(run_record));
  const auto noise = run_record.find("noise");
  if (noise == run_record.end() || !noise->is_object()) return;
  if (const auto load = foreign_load(run_record); load && load->notable()) {
    ++beside_others_;
    if (!most_foreign_ || load->cpus > most_foreign_->cpus) most_foreign_ = load;
  }
  const double steal = number_or_zero(*noise, "steal");
  most_steal_ = std::max(most_steal_, steal);
  if (steal > kNotableSteal) ++stolen_;
  const double throttled = number_or_zero(*noise, "throttled");
  most_throttled_seconds_ = std::max(most_throttled_seconds_, throttled);
  if (throttled > kNotableThrottle * number_or_zero(run_record, "wall_seconds")) ++throttled_;
  const auto errors = noise->find("error_counters");
  if (errors == noise->end() || !errors->is_object()) return;
  for (const auto& [interface, count] : errors->items())
    if (count.is_number() && count.get<std::uint64_t>() > 0)
      errors_[interface] += count.get<std::uint64_t>();
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
