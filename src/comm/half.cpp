// The reduction loops of the 2-byte types, built for several vector widths; the loader picks one.
#include "comm/half.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SCALEMARK_VECTOR_LOOP \
  [[gnu::optimize("O3"), gnu::target_clones("default", "avx2", "arch=skylake-avx512")]]
#else
#define SCALEMARK_VECTOR_LOOP
#endif

namespace scalemark {

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
