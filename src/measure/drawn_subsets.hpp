// A seeded sample of subsets, for permutation tests of more values than can be listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scalemark {

class DrawnSubsets {
 public:
  /// `draws` subsets of `values` places, each place in or out by a coin.
  static DrawnSubsets by_coins(std::size_t values, int draws, std::uint64_t seed);
  /// `draws` subsets of `size` of `values` places, all alike.
  static DrawnSubsets of_size(std::size_t values, std::size_t size, int draws, std::uint64_t seed);

  /// In how many subsets the values (one a place) sum to at most `limit`. Eight places are looked
  /// up at once.
  double at_most(const std::vector<double>& values, double limit) const;

 private:
  explicit DrawnSubsets(std::size_t values) : bytes_((values + 7) / 8) {}
  void add(const std::vector<bool>& subset);

  std::size_t bytes_;                 ///< of one subset, a bit a place
  std::vector<std::uint8_t> places_;  ///< subset after subset
};

}  // namespace scalemark
