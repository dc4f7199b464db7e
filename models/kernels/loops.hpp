// Defines how loops are vectorised and divided. Internal to models/kernels/.
#pragma once

#include <cstdint>

/// Into the function that is built for several vector widths.
#define SCALEMARK_INLINE [[gnu::always_inline]] inline
#if defined(__GNUC__) && !defined(__clang__)
#define SCALEMARK_INDEPENDENT _Pragma("GCC ivdep")  // iterations: pointers of a loop never overlap
#else
#define SCALEMARK_INDEPENDENT
#endif

namespace scalemark {

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace scalemark
