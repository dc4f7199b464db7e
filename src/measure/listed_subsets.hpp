// Subsets that are listed one by one: a seeded sample of more than can be counted, or those that
// are left of a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/subsets.hpp"

namespace scalemark {

class ListedSubsets final : public Subsets {
 public:
  /// Of so many places; empty.
  explicit ListedSubsets(std::size_t values) : bytes_((values + 7) / 8) {}
  /// `draws` subsets of `values` places, each place in or out by a coin.
  static ListedSubsets by_coins(std::size_t values, int draws, std::uint64_t seed);
  /// `draws` subsets of `size` of `values` places, all alike.
  static ListedSubsets of_size(std::size_t values, std::size_t size, int draws, std::uint64_t seed);

  /// The subset of the places whose bit is set; of at most 32 places.
  void add(std::uint32_t places);

  double size() const override;
  /// Eight places are looked up at once.
  double at_most(const std::vector<double>& values, double limit) const override;
  /// However many they are.
  std::optional<SubsetSplit> split(const std::vector<double>& values, double limit,
                                   double band) const override;

 private:
  std::size_t bytes_;                 ///< of one subset, a bit a place
  std::vector<std::uint8_t> places_;  ///< subset after subset
};

}  // namespace scalemark
