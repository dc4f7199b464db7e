// Defines bfloat16 and IEEE binary16 as bit patterns, and their sums for MPI (in fp32, rounded to
// nearest, ties to even). The loops are branch-free so that they vectorise. It is internal to
// comm/.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace scalemark {

inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x0040;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  // The exponent of an fp32 is larger by 112. Subnormals are whole numbers here: as fp32 patterns
  // they would be zero to a thread that flushes denormals.
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
  const std::uint32_t finite = magnitude < 0x0400u ? subnormal : normal;
  const std::uint32_t special =
      magnitude >= 0x7c00u ? 0x7f800000u : 0u;  // Inf and NaN keep the mantissa
  return std::bit_cast<float>(finite | special | sign);
}

inline std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  // Below 2^-14 the addition of 0.5 makes the hardware round at the subnormals' spacing of 2^-24.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<std::uint32_t>(0.5f);
  std::uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // 65520 and above round to infinity
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return static_cast<std::uint16_t>(half | sign);
}

/// Computes inout[i] = round(in[i] + inout[i]) for `count` elements.
void sum_bf16(const std::uint16_t* in, std::uint16_t* inout, std::size_t count);
void sum_f16(const std::uint16_t* in, std::uint16_t* inout, std::size_t count);
/// Computes inout[i] += in[i].
void add_f32(const float* in, float* inout, std::size_t count);

/// The loops of a 2-byte type, for `count` elements in memory that does not overlap.
struct HalfLoops {
  void (*round)(const float* in, std::uint16_t* out, std::size_t count);
  void (*widen)(const std::uint16_t* in, float* out, std::size_t count);
  void (*add)(const std::uint16_t* in, float* inout, std::size_t count);  ///< inout[i] += in[i]
};
extern const HalfLoops bf16_loops, f16_loops;

}  // namespace scalemark
