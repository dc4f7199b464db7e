// The limit of a tail against halving with a full count each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "measure/permutation.hpp"
#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark::permutation_tail_test {
namespace {

using Values = std::vector<double>;

/// Counts what is counted.
class CountedSubsets final : public Subsets {
 public:
  explicit CountedSubsets(std::shared_ptr<const Subsets> all) : all_(std::move(all)) {}
  double size() const override { return all_->size(); }
  double at_most(const Values& values, double limit) const override {
    ++counts;
    return all_->at_most(values, limit);
  }
  std::optional<SubsetSplit> split(const Values& values, double limit, double band) const override {
    ++counts;
    return all_->split(values, limit, band);
  }
  mutable int counts = 0;

 private:
  std::shared_ptr<const Subsets> all_;
};

/// Signs of winsorised values are flipped.
PermutationTail tail_of(const Values& x, std::shared_ptr<const Subsets> subsets) {
  const double limit = winsor_limit(x);
  const auto assuming = [x, limit](double difference) {
    AssumedSums sums;
    for (const double value : x) sums.values.push_back(value - difference);
    sums.values = limited(std::move(sums.values), 0, limit);
    double squares = 0;
    for (const double value : sums.values) {
      sums.limit += kRounding * std::abs(value);
      sums.mean += value / 2;
      squares += value * value;
    }
    sums.deviation = std::sqrt(squares) / 2;
    return sums;
  };
  return {std::move(subsets), 0, assuming};
}

double halved(const PermutationTail& tail, double below, double above, double refused) {
  for (int i = 0; i < 40; ++i) {
    const double middle = (below + above) / 2;
    (tail.at_least(middle) > refused ? above : below) = middle;
  }
  return above;
}

enum class Shape { normal, skewed, outliers, coarse, two_levels };

Values values_of(Shape shape, std::size_t n, std::mt19937_64& random) {
  Values x(n);
  for (double& value : x) {
    value = std::normal_distribution<double>()(random);
    if (shape == Shape::skewed) value = std::exp(value);
    if (shape == Shape::outliers && random() % 8 == 0) value -= 30;
    if (shape == Shape::coarse) value = std::round(2 * value);
    if (shape == Shape::two_levels) value = 0.05 * value + static_cast<double>(random() % 2);
  }
  return x;
}

void expect_as_halved(const Values& x, const PermutationTail& tail) {
  const auto [lowest, highest] = std::ranges::minmax(x);
  if (lowest == highest) return;
  for (const double share : {0.025, 0.05}) {
    const double refused = std::floor(share * tail.assignments());
    const double below = 2 * lowest - highest, above = median(x);
    EXPECT_NEAR(lower_limit(tail, below, above, refused), halved(tail, below, above, refused),
                1e-11 * (highest - lowest));
  }
}

/// Also where the tail does not rise all the way, as winsorised values far apart may have it.
TEST(LowerLimit, IsThatOfFortyFullCounts) {
  std::mt19937_64 random(3);
  for (const Shape shape :
       {Shape::normal, Shape::skewed, Shape::outliers, Shape::coarse, Shape::two_levels})
    for (int i = 0; i < 30; ++i) {
      const std::size_t n = 6 + random() % 12;
      const Values x = values_of(shape, n, random);
      expect_as_halved(x, tail_of(x, std::make_shared<AllSubsets>(n)));
    }
}

TEST(LowerLimit, OfDrawnSubsetsIsThatOfFortyFullCounts) {
  std::mt19937_64 random(5);
  for (const Shape shape : {Shape::normal, Shape::outliers, Shape::two_levels})
    for (int i = 0; i < 10; ++i) {
      const Values x = values_of(shape, 40, random);
      expect_as_halved(
          x,
          tail_of(x, std::make_shared<ListedSubsets>(ListedSubsets::by_coins(40, 3000, random()))));
    }
}

TEST(LowerLimit, OfNormalValuesTakesFewFullCounts) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10; ++i) {
    const Values x = values_of(Shape::normal, 20, random);
    const auto subsets = std::make_shared<CountedSubsets>(std::make_shared<AllSubsets>(20));
    const auto [lowest, highest] = std::ranges::minmax(x);
    lower_limit(tail_of(x, subsets), 2 * lowest - highest, median(x), 0.025 * subsets->size());
    EXPECT_LT(subsets->counts, 12);
  }
}

}  // namespace
}  // namespace scalemark::permutation_tail_test
