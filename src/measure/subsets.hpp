// Subsets of values, counted by their sum: what permutation tests are made of.
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

// Sums of subsets of the same values, of which many are asked for.

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

// Subsets that are listed one by one: a seeded sample of more than can be counted, or those that
// are left of a count.

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

// Every subset of few values, or every one of a size, counted without being listed: the values are
// cut in two halves, whose subset sums are kept sorted (Horowitz and Sahni 1974), so that 2^n
// subsets cost some 2^(n/2) steps.

class AllSubsets final : public Subsets {
 public:
  /// Of at most 32 values.
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

/// Choices of k of n; infinite where a double can't hold it.
double binomial(std::size_t n, std::size_t k);

// The assignments that a permutation test counts.

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
