// Subsets of values, counted by their sum: what permutation tests are made of.
#pragma once

#include <memory>
#include <optional>
#include <vector>

namespace scalemark {

struct SubsetSplit;

class Subsets {
 public:
  virtual ~Subsets() = default;

  virtual double size() const = 0;

  /// In how many subsets the values (one a place) sum to at most `limit`.
  virtual double at_most(const std::vector<double>& values, double limit) const = 0;

  /// Those whose sum lies within `band` of the limit, and how many lie below it. nullopt where they
  /// are more than are worth a list.
  virtual std::optional<SubsetSplit> split(const std::vector<double>& values, double limit,
                                           double band) const = 0;
};

struct SubsetSplit {
  double below = 0;                     ///< subsets whose sum is smaller than limit - band
  std::shared_ptr<const Subsets> near;  ///< those within the band
};

}  // namespace scalemark
