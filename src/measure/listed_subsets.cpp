// See listed_subsets.hpp.
#include "measure/listed_subsets.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "measure/subset_sums.hpp"

namespace scalemark {

ListedSubsets ListedSubsets::by_coins(std::size_t values, int draws, std::uint64_t seed) {
  ListedSubsets drawn(values);
  std::mt19937_64 random(seed);
  drawn.places_.resize(drawn.bytes_ * static_cast<std::size_t>(draws));
  for (std::uint8_t* subset = drawn.places_.data(); draws > 0; --draws, subset += drawn.bytes_)
    for (std::size_t i = 0; i < values; ++i)
      subset[i / 8] |= static_cast<std::uint8_t>((random() >> 63) << i % 8);
  return drawn;
}

ListedSubsets ListedSubsets::of_size(std::size_t values, std::size_t size, int draws,
                                     std::uint64_t seed) {
  ListedSubsets drawn(values);
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(values);
  std::iota(order.begin(), order.end(), std::size_t{0});
  drawn.places_.resize(drawn.bytes_ * static_cast<std::size_t>(draws));
  for (std::uint8_t* subset = drawn.places_.data(); draws > 0; --draws, subset += drawn.bytes_)
    for (std::size_t i = 0; i < size; ++i) {
      std::swap(order[i], order[i + random() % (values - i)]);
      subset[order[i] / 8] |= static_cast<std::uint8_t>(1U << order[i] % 8);
    }
  return drawn;
}

void ListedSubsets::add(std::uint32_t places) {
  for (std::size_t byte = 0; byte < bytes_; ++byte)
    places_.push_back(static_cast<std::uint8_t>(places >> 8 * byte));
}

double ListedSubsets::size() const {
  const std::size_t subsets = bytes_ == 0 ? 0 : places_.size() / bytes_;
  return static_cast<double>(subsets);
}

double ListedSubsets::at_most(const std::vector<double>& values, double limit) const {
  const SubsetSums sums(values);
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < places_.size(); begin += bytes_)
    count += sums.of(&places_[begin]) <= limit ? 1 : 0;
  return static_cast<double>(count);
}

std::optional<SubsetSplit> ListedSubsets::split(const std::vector<double>& values, double limit,
                                                double band) const {
  const SubsetSums sums(values);
  auto near = std::make_shared<ListedSubsets>(*this);
  near->places_.clear();
  SubsetSplit split;
  for (std::size_t begin = 0; begin < places_.size(); begin += bytes_) {
    const double beyond = sums.of(&places_[begin]) - limit;
    if (beyond < -band)
      ++split.below;
    else if (beyond <= band)
      near->places_.insert(near->places_.end(), &places_[begin], &places_[begin] + bytes_);
  }
  split.near = std::move(near);
  return split;
}

}  // namespace scalemark
