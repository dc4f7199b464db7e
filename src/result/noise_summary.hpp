// Says when the evidence of disturbance in run records is large enough to doubt the numbers: other
// processes, CPU steal, cgroup throttling, errors of network interfaces, ranks that run elsewhere
// than they should. What to do about each: docs/reducing_variance.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/measured.hpp"

namespace scalemark {

class NoiseSummary {
 public:
  /// Evidence below these fractions is usual and not worth a word.
  static constexpr double kNotableSteal = 0.01;     ///< of all CPU time of a host
  static constexpr double kNotableThrottle = 0.01;  ///< of the wall time of the run

  /// Adds a RunResult or an InferenceResult.
  template <typename Run>
  void add(const Run& run) {
    add_noise(run.noise, run.wall_seconds.value_or(0));
    for (const record::RankPlacement& rank : run.ranks) add_rank(rank);
  }
  /// One sentence a kind of disturbance; empty for a quiet machine.
  std::vector<std::string> warnings() const;

 private:
  void add_noise(const record::Noise& noise, double wall_seconds);
  /// One whose binding did not come about, or is a poor one.
  void add_rank(const record::RankPlacement& rank);

  int runs_ = 0, beside_others_ = 0, stolen_ = 0, throttled_ = 0;
  std::optional<record::ForeignLoad> most_foreign_;
  double most_steal_ = 0, most_throttled_seconds_ = 0;
  std::map<std::string, std::int64_t> errors_;
  std::set<std::string> misplaced_;
};

}  // namespace scalemark
