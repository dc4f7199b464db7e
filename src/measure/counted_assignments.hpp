// The assignments that a permutation test counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "measure/subsets.hpp"

namespace scalemark {

/// Values up to which every assignment is counted; beyond, a seeded sample of them.
inline constexpr std::size_t kMostExactValues = 30;
/// Size of that sample, which is of others than the observed one.
inline constexpr int kDrawnAssignments = 9'999;

/// Keeps what it has drawn, also for its copies: points with as many launches share it.
class CountedAssignments {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a seed stands for what is drawn with it
  CountedAssignments(std::uint64_t seed = 1) : drawn_(std::make_shared<Drawn>()), seed_(seed) {}

  /// Which of n signs are flipped.
  std::shared_ptr<const Subsets> of_signs(std::size_t n) const;
  /// Which m of n + m values are the second sample.
  std::shared_ptr<const Subsets> of_samples(std::size_t n, std::size_t m) const;

 private:
  using Drawn = std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const Subsets>>;

  std::shared_ptr<Drawn> drawn_;
  std::uint64_t seed_;
};

}  // namespace scalemark
