// Sums of subsets of the same values, of which many are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace scalemark {

/// Eight places are looked up at once.
class SubsetSums {
 public:
  explicit SubsetSums(const std::vector<double>& values) : sums_((values.size() + 7) / 8) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto& sums = sums_[i / 8];
      const std::size_t known = std::size_t{1} << i % 8;
      for (std::size_t bits = 0; bits < known; ++bits) sums[known | bits] = sums[bits] + values[i];
    }
  }

  /// Of the places whose bit is set, the first eight in the first byte.
  double of(const std::uint8_t* places) const {
    double sum = 0;
    for (const auto& sums : sums_) sum += sums[*places++];
    return sum;
  }
  /// The same of at most 32 places.
  double of(std::uint32_t places) const {
    double sum = 0;
    for (const auto& sums : sums_) {
      sum += sums[places & 0xffU];
      places >>= 8;
    }
    return sum;
  }

 private:
  std::vector<std::array<double, 256>> sums_;  ///< [eight places][their bits]
};

}  // namespace scalemark
