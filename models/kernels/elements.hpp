// Loads and stores fp32 and bf16 elements, which are computed with in fp32. The functions are
// branch-free, so that loops over them vectorise. Internal to the loops of models/.
#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>

namespace scalemark {

inline float load(float value) { return value; }
inline float load(c10::BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.x) << 16);
}

inline void store(float& to, float value) { to = value; }
/// Rounded to nearest, ties to even.
inline void store(c10::BFloat16& to, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool nan = static_cast<std::int32_t>(bits & 0x7fffffff) > 0x7f800000;
  to.x = static_cast<std::uint16_t>(nan ? 0x7fc0 : rounded);
}

}  // namespace scalemark
