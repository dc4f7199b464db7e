// Every subset of few values, or every one of a size, counted without being listed: the values are
// cut in two halves, whose subset sums are kept sorted (Horowitz and Sahni 1974), so that 2^n
// subsets cost some 2^(n/2) steps.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "measure/subsets.hpp"

namespace scalemark {

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

}  // namespace scalemark
