// Marks a function whose loop is built for several vector widths; the loader picks one.
#pragma once

// Not for the thread sanitizer: the loader picks before its runtime is there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
// The levels are chosen by what a processor can do (AVX2 with FMA, AVX-512), whoever makes it; GCC
// 11 knows them by the names of processors alone. Without jump threading a select that follows
// another one stays a select.
#if __GNUC__ >= 12
#define SCALEMARK_VECTOR_LOOP               \
  [[gnu::optimize("O3", "no-thread-jumps"), \
    gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#define SCALEMARK_AVX512_LOOP [[gnu::optimize("O3"), gnu::target("arch=x86-64-v4")]]
#else
#define SCALEMARK_VECTOR_LOOP               \
  [[gnu::optimize("O3", "no-thread-jumps"), \
    gnu::target_clones("default", "avx2", "arch=skylake-avx512")]]
#define SCALEMARK_AVX512_LOOP [[gnu::optimize("O3"), gnu::target("arch=skylake-avx512")]]
#endif
#else
#define SCALEMARK_VECTOR_LOOP
#endif
