// See drawn_subsets.hpp.
#include "measure/drawn_subsets.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace scalemark {
namespace {

/// [bits]: the sum of those of up to eight values whose bit is set.
using SumsOfEight = std::array<double, 256>;

std::vector<SumsOfEight> sums_by_eights(const std::vector<double>& values) {
  std::vector<SumsOfEight> sums((values.size() + 7) / 8);
  for (std::size_t group = 0; group < sums.size(); ++group) {
    sums[group][0] = 0;
    for (std::size_t bit = 0; bit < 8; ++bit) {
      const std::size_t place = 8 * group + bit;
      const double value = place < values.size() ? values[place] : 0;
      for (std::size_t known = 0; known < std::size_t{1} << bit; ++known)
        sums[group][known | std::size_t{1} << bit] = sums[group][known] + value;
    }
  }
  return sums;
}

}  // namespace

void DrawnSubsets::add(const std::vector<bool>& subset) {
  const std::size_t begin = places_.size();
  places_.resize(begin + bytes_);
  for (std::size_t i = 0; i < subset.size(); ++i)
    if (subset[i]) places_[begin + i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
}

DrawnSubsets DrawnSubsets::by_coins(std::size_t values, int draws, std::uint64_t seed) {
  DrawnSubsets drawn(values);
  std::mt19937_64 random(seed);
  std::vector<bool> subset(values);
  for (int draw = 0; draw < draws; ++draw) {
    for (std::size_t i = 0; i < values; ++i) subset[i] = random() >> 63 != 0;
    drawn.add(subset);
  }
  return drawn;
}

DrawnSubsets DrawnSubsets::of_size(std::size_t values, std::size_t size, int draws,
                                   std::uint64_t seed) {
  DrawnSubsets drawn(values);
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(values);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<bool> subset(values);
    for (std::size_t i = 0; i < size; ++i) {
      std::swap(order[i], order[i + random() % (values - i)]);
      subset[order[i]] = true;
    }
    drawn.add(subset);
  }
  return drawn;
}

double DrawnSubsets::at_most(const std::vector<double>& values, double limit) const {
  const auto sums = sums_by_eights(values);
  double count = 0;
  for (std::size_t begin = 0; begin < places_.size(); begin += bytes_) {
    double sum = 0;
    for (std::size_t group = 0; group < bytes_; ++group) sum += sums[group][places_[begin + group]];
    count += sum <= limit ? 1 : 0;
  }
  return count;
}

}  // namespace scalemark
