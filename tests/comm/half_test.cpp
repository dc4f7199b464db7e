// bfloat16 and binary16: exact values of the formats, rounding to nearest even, and the sums that
// MPI uses.
#include "comm/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace scalemark::half_test {
namespace {

TEST(Bf16, EveryPatternSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value))));
    } else {
      EXPECT_EQ(float_to_bf16(value), half);
    }
  }
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(bf16_to_float(float_to_bf16(256.0f)), 256.0f);
  EXPECT_EQ(bf16_to_float(float_to_bf16(257.0f)), 256.0f);  // a tie: 256 is even
  EXPECT_EQ(bf16_to_float(float_to_bf16(259.0f)), 260.0f);  // a tie: 260 is even
  EXPECT_EQ(bf16_to_float(float_to_bf16(257.01f)), 258.0f);
  EXPECT_EQ(bf16_to_float(float_to_bf16(3.4e38f)), std::numeric_limits<float>::infinity());
}

TEST(F16, EveryPatternSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(value))));
    } else {
      EXPECT_EQ(float_to_f16(value), half) << value;
    }
  }
}

#if defined(__SSE2__)
// The threads that compute do so, and the MPI thread does not: any of them may widen.
TEST(F16, SubnormalsAreThereForAThreadThatFlushesDenormals) {
  const unsigned before = _mm_getcsr();
  std::vector<float> values(0x400), flushed(values.size()), sums(values.size(), 1.f);
  std::vector<std::uint16_t> halves(values.size());
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  f16_loops.widen(halves.data(), values.data(), halves.size());
  _mm_setcsr(before | _MM_FLUSH_ZERO_ON | 0x0040);  // and denormals are zero
  f16_loops.widen(halves.data(), flushed.data(), halves.size());
  f16_loops.add(halves.data(), sums.data(), halves.size());
  _mm_setcsr(before);
  EXPECT_EQ(flushed, values);
  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(sums[i], 1.f + static_cast<float>(i) * 0x1p-24f) << i;
}
#endif

TEST(F16, KnowsItsLandmarks) {
  EXPECT_EQ(f16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_float(0xc000), -2.0f);
  EXPECT_EQ(f16_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_float(0x0400), 0x1p-14f);  // smallest normal
  EXPECT_EQ(f16_to_float(0x0001), 0x1p-24f);  // smallest subnormal
  EXPECT_EQ(f16_to_float(0x7c00), std::numeric_limits<float>::infinity());
}

TEST(F16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(f16_to_float(float_to_f16(2049.0f)), 2048.0f);
  EXPECT_EQ(f16_to_float(float_to_f16(2051.0f)), 2052.0f);
  EXPECT_EQ(float_to_f16(65519.9f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0x0000);      // half of the smallest subnormal: tie to zero
  EXPECT_EQ(float_to_f16(0x1.8p-24f), 0x0002);    // 1.5 subnormals: tie to the even 2
  EXPECT_EQ(float_to_f16(0x1.ffcp-15f), 0x0400);  // rounds up into the normals
  EXPECT_EQ(float_to_f16(-0.0f), 0x8000);
}

TEST(HalfSums, AddInFloatAndRoundOnce) {
  // Odd length: vector body and scalar tail.
  const std::size_t count = 1037;
  std::vector<std::uint16_t> a(count), b(count), c(count), d(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = float_to_bf16(static_cast<float>(i) * 0.37f - 100);
    b[i] = float_to_bf16(static_cast<float>(i % 97) * 1.7f);
    c[i] = float_to_f16(static_cast<float>(i) * 0.37f - 100);
    d[i] = float_to_f16(static_cast<float>(i % 97) * 1e-6f);  // subnormals among them
  }
  const auto b_before = b, d_before = d;
  sum_bf16(a.data(), b.data(), count);
  sum_f16(c.data(), d.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(b[i], float_to_bf16(bf16_to_float(a[i]) + bf16_to_float(b_before[i]))) << i;
    ASSERT_EQ(d[i], float_to_f16(f16_to_float(c[i]) + f16_to_float(d_before[i]))) << i;
  }
}

// Vector code and the processor's own conversions against the definitions above.
TEST(HalfLoops, GiveTheBitsOfTheirDefinition) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0xffff'0000u; bits += 9973)  // prime; every exponent
    values.push_back(std::bit_cast<float>(bits));
  for (std::uint32_t half = 0; half < 0x7c00; ++half)  // ties between all neighbours
    values.push_back((f16_to_float(static_cast<std::uint16_t>(half)) +
                      f16_to_float(static_cast<std::uint16_t>(half + 1))) /
                     2);
  if (values.size() % 8 == 0) values.push_back(1);  // a tail behind the vectors
  const std::size_t count = values.size();
  const auto check = [&](const HalfLoops& loops, auto round, auto widen) {
    std::vector<std::uint16_t> rounded(count);
    std::vector<float> wide(count), sums(count, 1.25f);
    loops.round(values.data(), rounded.data(), count);
    loops.widen(rounded.data(), wide.data(), count);
    loops.add(rounded.data(), sums.data(), count);
    int wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::isnan(values[i])) {
        wrong += !std::isnan(wide[i]) || !std::isnan(sums[i]);
        continue;
      }
      wrong += rounded[i] != round(values[i]) || wide[i] != widen(rounded[i]) ||
               sums[i] != 1.25f + widen(rounded[i]);
    }
    EXPECT_EQ(wrong, 0);
  };
  check(bf16_loops, float_to_bf16, bf16_to_float);
  check(f16_loops, float_to_f16, f16_to_float);
}

}  // namespace
}  // namespace scalemark::half_test
