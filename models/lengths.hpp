// Draws lengths of synthetic sequences from a stated distribution.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "models/length_distribution.hpp"

namespace scalemark {

/// The distribution. `fixed`: all have the length `longest`. `uniform`: 1 to `longest`.
/// `lognormal`: round(median exp(sigma z)) with normal z, limited to 1 to `longest`.
struct Lengths {
  LengthDistribution distribution = LengthDistribution::fixed;
  double median = 0, sigma = 0;  ///< parameters of lognormal

  bool vary() const { return distribution != LengthDistribution::fixed; }
  std::int64_t draw(std::int64_t longest, at::Generator generator) const;
};

}  // namespace scalemark
