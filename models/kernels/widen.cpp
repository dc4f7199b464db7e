// Converts bf16 to fp32 with stores that bypass the caches.
#include "models/kernels/widen.hpp"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace scalemark {
namespace {

#if defined(__SSE2__)
constexpr std::int64_t kLoad = 8;                  ///< elements of one load
constexpr std::int64_t kFewestElements = 1 << 18;  ///< 1 MiB of fp32: fewer stay in a cache
constexpr std::int64_t kLeastLoads = 2048;         ///< for which another thread is worth it

bool suits(const at::Tensor& from, const at::Tensor& to) {
  return from.is_cpu() && to.is_cpu() && from.scalar_type() == at::kBFloat16 &&
         to.scalar_type() == at::kFloat && from.is_contiguous() && to.is_contiguous() &&
         from.numel() >= kFewestElements && from.numel() % kLoad == 0 &&
         reinterpret_cast<std::uintptr_t>(to.const_data_ptr()) % sizeof(__m128i) == 0;
}

/// The bits of a bf16 are the upper half of those of its fp32.
void stream(const c10::BFloat16* from, float* to, std::int64_t count) {
  const __m128i low = _mm_setzero_si128();
  for (std::int64_t i = 0; i < count; i += kLoad) {
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    auto* const place = reinterpret_cast<__m128i*>(to + i);
    _mm_stream_si128(place, _mm_unpacklo_epi16(low, high));
    _mm_stream_si128(place + 1, _mm_unpackhi_epi16(low, high));
  }
  _mm_sfence();  // another thread may read them next
}
#endif

}  // namespace

void widen(const at::Tensor& from, at::Tensor& to) {
#if defined(__SSE2__)
  if (suits(from, to)) {
    const c10::BFloat16* const x = from.const_data_ptr<c10::BFloat16>();
    float* const y = to.mutable_data_ptr<float>();
    RECORD_FUNCTION("scalemark::widen", std::vector<c10::IValue>({from}));  // for traces
    return at::parallel_for(0, from.numel() / kLoad, kLeastLoads, [&](auto begin, auto end) {
      stream(x + begin * kLoad, y + begin * kLoad, (end - begin) * kLoad);
    });
  }
#endif
  to.copy_(from);
}

}  // namespace scalemark
