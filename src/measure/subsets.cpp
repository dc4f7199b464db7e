// Counts subsets of values by their sum, exactly or by drawing.
#include "measure/subsets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>

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

namespace {

/// At most this many subsets are listed one by one.
constexpr std::size_t kMostListedSubsets = 100'000;

/// This sum also holds the set of places that it was made of.
struct PlacedSum {
  double sum = 0;
  std::uint32_t places = 0;  ///< a bit each

  bool operator<(const PlacedSum& other) const { return sum < other.sum; }
  PlacedSum operator+(const PlacedSum& other) const {
    return {sum + other.sum, places | other.places};
  }
};

double sum_of_subset(double sum) { return sum; }
double sum_of_subset(const PlacedSum& placed) { return placed.sum; }

template <typename Sum>
using SortedSums = std::vector<Sum>;

/// Returns the sorted union of `sums` and of `others`, to each of which x is added.
template <typename Sum>
SortedSums<Sum> merged(const SortedSums<Sum>& sums, const SortedSums<Sum>& others, const Sum& x) {
  SortedSums<Sum> shifted = others, all(sums.size() + others.size());
  for (Sum& value : shifted) value = value + x;
  std::ranges::merge(sums, shifted, all.begin(), std::less<>());
  return all;
}

/// Element [k] of the result holds the sorted sums of all subsets of k values. Where sizes don't
/// matter, element [0] holds the sums of all subsets.
template <typename Sum>
std::vector<SortedSums<Sum>> sorted_sums(std::span<const Sum> x, bool by_size) {
  std::vector<SortedSums<Sum>> sums(by_size ? x.size() + 1 : 1);
  sums[0] = {Sum{}};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!by_size) sums[0] = merged(sums[0], sums[0], x[i]);
    for (std::size_t k = by_size ? i + 1 : 0; k > 0; --k)
      sums[k] = merged(sums[k], sums[k - 1], x[i]);
  }
  return sums;
}

/// Calls visit(left, right) with pairs of sorted lists. A sum of `left` plus a sum of `right` is
/// the sum of one subset, and every subset occurs once.
template <typename Sum, typename Visit>
void for_all_halves(const std::vector<Sum>& x, const std::optional<std::size_t>& size,
                    const Visit& visit) {
  const std::span all(x);
  const auto left = sorted_sums(all.first(x.size() / 2), size.has_value());
  const auto right = sorted_sums(all.subspan(x.size() / 2), size.has_value());
  if (!size) return visit(left[0], right[0]);
  for (std::size_t k = 0; k < left.size() && k <= *size; ++k)
    if (*size - k < right.size()) visit(left[k], right[*size - k]);
}

/// Walks down the sorted list of one half while the sums of the other half rise.
template <typename Sum>
class FittingPartners {
 public:
  FittingPartners(const SortedSums<Sum>& others, double limit)
      : others_(others), limit_(limit), count_(others.size()) {}
  /// Returns how many partners keep the sum at most the limit; these are the first ones of the
  /// list. No later call may ask for a smaller sum.
  std::size_t of(const Sum& sum) {
    while (count_ > 0 && sum_of_subset(sum) + sum_of_subset(others_[count_ - 1]) > limit_) --count_;
    return count_;
  }

 private:
  const SortedSums<Sum>& others_;
  double limit_;
  std::size_t count_;
};

}  // namespace

double AllSubsets::size() const {
  return size_ ? binomial(values_, *size_) : std::exp2(static_cast<double>(values_));
}

double AllSubsets::at_most(const std::vector<double>& values, double limit) const {
  double count = 0;
  for_all_halves(values, size_, [&](const auto& left, const auto& right) {
    FittingPartners fitting(right, limit);
    for (const double sum : left) count += static_cast<double>(fitting.of(sum));
  });
  return count;
}

std::optional<SubsetSplit> AllSubsets::split(const std::vector<double>& values, double limit,
                                             double band) const {
  std::vector<PlacedSum> placed;
  for (const double value : values) placed.push_back({value, std::uint32_t{1} << placed.size()});
  auto near = std::make_shared<ListedSubsets>(values.size());
  SubsetSplit split;
  std::size_t listed = 0;
  for_all_halves(placed, size_, [&](const auto& left, const auto& right) {
    FittingPartners below(right, limit - band), within(right, limit + band);
    for (const PlacedSum& sum : left) {
      const std::size_t first = below.of(sum), end = within.of(sum);
      split.below += static_cast<double>(first);
      listed += end - first;
      if (listed > kMostListedSubsets) return;
      for (std::size_t i = first; i < end; ++i) near->add(sum.places | right[i].places);
    }
  });
  if (listed > kMostListedSubsets) return std::nullopt;
  split.near = std::move(near);
  return split;
}

double binomial(std::size_t n, std::size_t k) {
  double ways = 1;
  for (std::size_t i = 1; i <= k; ++i)
    ways = ways * static_cast<double>(n - k + i) / static_cast<double>(i);
  return std::round(ways);
}

std::shared_ptr<const Subsets> CountedAssignments::of_signs(std::size_t n) const {
  if (n <= kMostExactValues) return std::make_shared<AllSubsets>(n);
  auto& drawn = (*drawn_)[{n, 0}];
  if (!drawn)
    drawn = std::make_shared<ListedSubsets>(ListedSubsets::by_coins(n, kDrawnAssignments, seed_));
  return drawn;
}

std::shared_ptr<const Subsets> CountedAssignments::of_samples(std::size_t n, std::size_t m) const {
  if (n + m <= kMostExactValues) return std::make_shared<AllSubsets>(n + m, m);
  auto& drawn = (*drawn_)[{n, m}];
  if (!drawn)
    drawn =
        std::make_shared<ListedSubsets>(ListedSubsets::of_size(n + m, m, kDrawnAssignments, seed_));
  return drawn;
}

}  // namespace scalemark
