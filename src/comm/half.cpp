// Implements the loops over 2-byte types.
#include "comm/half.hpp"

#include "vector_loop.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define SCALEMARK_F16C
#endif

namespace scalemark {
namespace {

SCALEMARK_VECTOR_LOOP
void round_bf16(const float* __restrict in, std::uint16_t* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float_to_bf16(in[i]);
}

SCALEMARK_VECTOR_LOOP
void widen_bf16(const std::uint16_t* __restrict in, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = bf16_to_float(in[i]);
}

SCALEMARK_VECTOR_LOOP
void add_bf16(const std::uint16_t* __restrict in, float* __restrict inout, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) inout[i] += bf16_to_float(in[i]);
}

#ifdef SCALEMARK_F16C
/// Converts eight elements at a time with the processor's own conversion, four times as fast as the
/// bit arithmetic, and returns the number of converted elements. The bits are the same, except that
/// a NaN keeps the upper bits of its payload.
[[gnu::target("avx,f16c")]] std::size_t round_f16_native(const float* in, std::uint16_t* out,
                                                         std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
bool has_f16c() { return __builtin_cpu_supports("f16c") != 0; }
#else
std::size_t round_f16_native(const float*, std::uint16_t*, std::size_t) { return 0; }
bool has_f16c() { return false; }
#endif

SCALEMARK_VECTOR_LOOP
void round_f16_portable(const float* __restrict in, std::uint16_t* __restrict out,
                        std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float_to_f16(in[i]);
}

void round_f16(const float* in, std::uint16_t* out, std::size_t count) {
  const std::size_t done = has_f16c() ? round_f16_native(in, out, count) : 0;
  round_f16_portable(in + done, out + done, count - done);
}

SCALEMARK_VECTOR_LOOP
void widen_f16(const std::uint16_t* __restrict in, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = f16_to_float(in[i]);
}

SCALEMARK_VECTOR_LOOP
void add_f16(const std::uint16_t* __restrict in, float* __restrict inout, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) inout[i] += f16_to_float(in[i]);
}

}  // namespace

const HalfLoops bf16_loops{round_bf16, widen_bf16, add_bf16};
const HalfLoops f16_loops{round_f16, widen_f16, add_f16};

SCALEMARK_VECTOR_LOOP
void add_f32(const float* __restrict in, float* __restrict inout, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) inout[i] += in[i];
}

SCALEMARK_VECTOR_LOOP
void sum_bf16(const std::uint16_t* __restrict in, std::uint16_t* __restrict inout,
              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    inout[i] = float_to_bf16(bf16_to_float(in[i]) + bf16_to_float(inout[i]));
}

SCALEMARK_VECTOR_LOOP
void sum_f16(const std::uint16_t* __restrict in, std::uint16_t* __restrict inout,
             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    inout[i] = float_to_f16(f16_to_float(in[i]) + f16_to_float(inout[i]));
}

}  // namespace scalemark
