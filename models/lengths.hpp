// Lengths of synthetic sequences, drawn from a stated distribution.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "models/length_distribution.hpp"

namespace scalemark {

/// fixed: all `longest`. uniform: 1 to `longest`. lognormal: round(median exp(sigma z)), z normal,
/// held within 1 and `longest`.
struct Lengths {
  LengthDistribution distribution = LengthDistribution::fixed;
  double median = 0, sigma = 0;  ///< of lognormal

  bool vary() const { return distribution != LengthDistribution::fixed; }
  std::int64_t draw(std::int64_t longest, at::Generator generator) const;
};

}  // namespace scalemark
