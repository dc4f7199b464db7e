// Marks a function whose loop is built for several vector widths; the loader picks one.
#pragma once

// Not for the thread sanitizer: the loader picks before its runtime is there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define SCALEMARK_VECTOR_LOOP \
  [[gnu::optimize("O3"), gnu::target_clones("default", "avx2", "arch=skylake-avx512")]]
#else
#define SCALEMARK_VECTOR_LOOP
#endif
