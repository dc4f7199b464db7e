// Implements exp() for loops that are to be vectorised. Internal to models/kernels/.
#pragma once

#include <bit>
#include <cstdint>

#include "models/kernels/loops.hpp"

namespace scalemark {

/// exp(x) of x <= 0, within 2 ulp; below -87 as at -87. Without a branch or a call, for vectors.
SCALEMARK_INLINE float exp_below_zero(float x) {
  constexpr float kRound = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  x = x < -87.f ? -87.f : x;  // NaN stays
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.f / 720;  // Taylor's series: |r| <= ln(2) / 2
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const auto exponent = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u;
  return p * std::bit_cast<float>(exponent);
}

}  // namespace scalemark
