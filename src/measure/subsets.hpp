// Counts subsets of values by their sum, on which permutation tests are based.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace scalemark {

struct SubsetSplit;

/// A set of subsets whose sums can be counted.
class Subsets {
 public:
  virtual ~Subsets() = default;

  virtual double size() const = 0;

  /// Returns the number of subsets whose values sum to at most `limit`. There is one value for each
  /// place.
  virtual double at_most(const std::vector<double>& values, double limit) const = 0;

  /// Returns the subsets whose sum lies within `band` of the limit, and how many lie below it.
  /// Returns nullopt where there are too many to list.
  virtual std::optional<SubsetSplit> split(const std::vector<double>& values, double limit,
                                           double band) const = 0;
};

/// Subsets divided by the distance of their sum from a limit.
struct SubsetSplit {
  double below = 0;                     ///< subsets whose sum is smaller than limit - band
  std::shared_ptr<const Subsets> near;  ///< subsets within the band
};

// Computes the sums of many subsets of the same values.

/// Holds a table of the sums of eight places at a time.
class SubsetSums {
 public:
  explicit SubsetSums(const std::vector<double>& values) : sums_((values.size() + 7) / 8) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto& sums = sums_[i / 8];
      const std::size_t known = std::size_t{1} << i % 8;
      for (std::size_t bits = 0; bits < known; ++bits) sums[known | bits] = sums[bits] + values[i];
    }
  }

  /// Returns the sum of the places whose bit is set. The first byte holds the first eight places.
  double of(const std::uint8_t* places) const {
    double sum = 0;
    for (const auto& sums : sums_) sum += sums[*places++];
    return sum;
  }
  /// Returns the sum of the places whose bit is set, for at most 32 places.
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

// Stores subsets one by one: a seeded sample where there are too many to count, or those that are
// left after a count.

class ListedSubsets final : public Subsets {
 public:
  /// Makes an empty list of subsets of `values` places.
  explicit ListedSubsets(std::size_t values) : bytes_((values + 7) / 8) {}
  /// Draws `draws` subsets of `values` places. Each place is included with probability 1/2.
  static ListedSubsets by_coins(std::size_t values, int draws, std::uint64_t seed);
  /// Draws `draws` subsets of `size` of `values` places. All such subsets are equally likely.
  static ListedSubsets of_size(std::size_t values, std::size_t size, int draws, std::uint64_t seed);

  /// Adds the subset of the places whose bit is set. There must be at most 32 places.
  void add(std::uint32_t places);

  double size() const override;
  /// Counts the subsets whose sum is at most `limit`. Sums of eight places at a time are looked up
  /// in a table.
  double at_most(const std::vector<double>& values, double limit) const override;
  /// Always returns a list, however long it is.
  std::optional<SubsetSplit> split(const std::vector<double>& values, double limit,
                                   double band) const override;

 private:
  std::size_t bytes_;                 ///< bytes of one subset, with a bit for each place
  std::vector<std::uint8_t> places_;  ///< subset after subset
};

// Every subset of few values, or every one of a size, counted without being listed: the values are
// cut in two halves, whose subset sums are kept sorted (Horowitz and Sahni 1974), so that 2^n
// subsets cost some 2^(n/2) steps.

class AllSubsets final : public Subsets {
 public:
  /// `values` is at most 32. With `size`, only the subsets of that many values are counted.
  explicit AllSubsets(std::size_t values) : values_(values) {}
  AllSubsets(std::size_t values, std::size_t size) : values_(values), size_(size) {}

  double size() const override;
  double at_most(const std::vector<double>& values, double limit) const override;
  std::optional<SubsetSplit> split(const std::vector<double>& values, double limit,
                                   double band) const override;

 private:
  std::size_t values_;
  std::optional<std::size_t> size_;
};

/// Returns the number of choices of k of n, or infinity where a double can't hold it.
double binomial(std::size_t n, std::size_t k);

// Provides the assignments that a permutation test counts.

/// Up to this number of values every assignment is counted. Beyond it, a seeded sample is.
inline constexpr std::size_t kMostExactValues = 30;
/// The sample has this many assignments, in addition to the observed one.
inline constexpr int kDrawnAssignments = 9'999;

/// Provides the assignments and keeps those it has drawn. Its copies share them, so that points
/// with equal numbers of launches use one sample.
class CountedAssignments {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a seed stands for what is drawn with it
  CountedAssignments(std::uint64_t seed = 1) : drawn_(std::make_shared<Drawn>()), seed_(seed) {}

  /// Returns the subsets of n signs that are flipped.
  std::shared_ptr<const Subsets> of_signs(std::size_t n) const;
  /// Returns the choices of m of n + m values that form the second sample.
  std::shared_ptr<const Subsets> of_samples(std::size_t n, std::size_t m) const;

 private:
  using Drawn = std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const Subsets>>;

  std::shared_ptr<Drawn> drawn_;
  std::uint64_t seed_;
};

}  // namespace scalemark
