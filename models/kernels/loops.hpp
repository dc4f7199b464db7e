// Defines what the kernels of this folder are written with: which tensors they accept, how they run
// as operators, which traces and FLOP counts see, how their loops are vectorised and divided, how
// fp32 and bf16 elements are loaded and stored, which are computed with in fp32, and exp(). The
// functions of loops are branch-free, so that loops over them vectorise. Internal to models/.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <vector>

/// Inlines a function into the one that is built for several vector widths.
#define SCALEMARK_INLINE [[gnu::always_inline]] inline
#if defined(__GNUC__) && !defined(__clang__)
#define SCALEMARK_INDEPENDENT _Pragma("GCC ivdep")  // iterations: pointers of a loop never overlap
#else
#define SCALEMARK_INDEPENDENT
#endif

namespace scalemark {

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Returns the length, in whole units, of `parts` even parts of `count`.
inline std::int64_t part_length(std::int64_t count, std::int64_t parts, std::int64_t unit) {
  return divided_up(divided_up(count, parts), unit) * unit;
}

/// Returns the threads that a loop has: one where other threads compute other results.
inline int threads_of_a_loop() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }

inline float load(float value) { return value; }
inline float load(c10::BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.x) << 16);
}

inline void store(float& to, float value) { to = value; }
/// Rounds to nearest, ties to even.
inline void store(c10::BFloat16& to, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool nan = static_cast<std::int32_t>(bits & 0x7fffffff) > 0x7f800000;
  to.x = static_cast<std::uint16_t>(nan ? 0x7fc0 : rounded);
}

/// Returns exp(x) for x <= 0 within 2 ulp, and exp(-87) below -87, without a branch or a call.
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

inline constexpr std::int64_t kLanesOfARow = 32;

/// Joins `start` and term(i) for i below `count`, in lanes, so that the result does not depend on
/// the width of the processor's vectors.
template <typename Join, typename Term>
SCALEMARK_INLINE float joined_in_lanes(std::int64_t count, float start, const Join& join,
                                       const Term& term) {
  float lane[kLanesOfARow];
  for (float& of_lane : lane) of_lane = start;
  std::int64_t i = 0;
  for (; i + kLanesOfARow <= count; i += kLanesOfARow) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t k = 0; k < kLanesOfARow; ++k) lane[k] = join(lane[k], term(i + k));
  }
  for (std::int64_t k = 0; i < count; ++i, ++k) lane[k] = join(lane[k], term(i));
  float joined = start;
  for (const float of_lane : lane) joined = join(joined, of_lane);
  return joined;
}

/// Returns the sum of term(i) for i below `count`.
template <typename Term>
SCALEMARK_INLINE float lane_sum(std::int64_t count, const Term& term) {
  return joined_in_lanes(
      count, 0, [](float a, float b) { return a + b; }, term);
}

/// Copies `count` values to panels of so many values, `panel` apart.
template <std::int64_t width>
SCALEMARK_INLINE void to_panels(const float* from, std::int64_t count, float* to,
                                std::int64_t panel) {
  for (; count >= width; count -= width, from += width, to += panel)
    std::copy(from, from + width, to);
  std::copy(from, from + count, to);
}

/// Vectors of memory that is aligned as floats are.
using EightFloats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using SixteenFloats [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;

inline constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

inline bool is_fp32_on_cpu(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat;
}

/// Returns whether x [N, in, H, W], in channels_last memory, is convolved with the weight [out, in,
/// h, w] in one group, in this type on the CPU.
inline bool is_convolution(const at::Tensor& x, const at::Tensor& weight, at::ScalarType type) {
  const auto fits = [type](const at::Tensor& t) {
    return t.is_cpu() && t.scalar_type() == type && t.dim() == 4;
  };
  return fits(x) && fits(weight) && weight.size(1) == x.size(1) &&
         x.suggest_memory_format() == kChannelsLast;
}

/// Returns whether the convolution is of `taps` x `taps`, an odd number, and gives as many pixels
/// as it takes.
inline bool keeps_pixels(const at::Tensor& weight, at::IntArrayRef stride, at::IntArrayRef padding,
                         std::int64_t taps) {
  const auto all = [](at::IntArrayRef values, std::int64_t value) {
    return std::ranges::all_of(values, [&](std::int64_t v) { return v == value; });
  };
  return all(weight.sizes().slice(2), taps) && all(stride, 1) && all(padding, taps / 2);
}

/// Returns whether x is fp32 or bf16 on the CPU, for which the loops are built.
inline bool suits_loops(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Returns the result of `work`, which is run as the operator `name` on `inputs`.
template <typename Work>
at::Tensor as_operator(const char* name, std::initializer_list<at::Tensor> inputs,
                       const Work& work) {
  at::RecordFunction record(at::RecordScope::FUNCTION);
  std::vector<c10::IValue> values;
  if (record.isActive()) values.assign(inputs.begin(), inputs.end());
  record.before(name, &values);
  const at::Tensor y = work();
  if (record.isActive()) record.setOutputs(std::vector<c10::IValue>({y}));
  return y;
}

}  // namespace scalemark
