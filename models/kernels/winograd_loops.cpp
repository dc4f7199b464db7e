// Implements the transforms with the matrices of Lavin and Gray 2016, section 4.1, and the matrix
// product.
#include "models/kernels/winograd_loops.hpp"

#include <algorithm>

#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

SCALEMARK_INLINE void transform_input(const TransformInput& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileIn][kTileIn];
#pragma GCC unroll 4
    for (int j = 0; j < kTileIn; ++j) {
      const float* const d = x + j * columns + c;
      const float d0 = d[0], d1 = d[rows], d2 = d[2 * rows], d3 = d[3 * rows];
      v[0][j] = d0 - d2;
      v[1][j] = d1 + d2;
      v[2][j] = d2 - d1;
      v[3][j] = d1 - d3;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTileIn; ++i) {
      float* const t = y + i * down + c;
      t[0] = v[i][0] - v[i][2];
      t[across] = v[i][1] + v[i][2];
      t[2 * across] = v[i][2] - v[i][1];
      t[3 * across] = v[i][1] - v[i][3];
    }
  }
}

SCALEMARK_INLINE void transform_filter(const TransformFilter& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileIn][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      const float* const w = x + j * columns + c;
      const float w0 = w[0], w1 = w[rows], w2 = w[2 * rows];
      v[0][j] = w0;
      v[1][j] = .5f * (w0 + w2 + w1);
      v[2][j] = .5f * (w0 + w2 - w1);
      v[3][j] = w2;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTileIn; ++i) {
      float* const t = y + i * down + c;
      t[0] = v[i][0];
      t[across] = .5f * (v[i][0] + v[i][2] + v[i][1]);
      t[2 * across] = .5f * (v[i][0] + v[i][2] - v[i][1]);
      t[3 * across] = v[i][2];
    }
  }
}

template <bool add, bool relu>
SCALEMARK_INLINE void transform_output(const TransformOutput& tile) {
  const auto [x, rows, columns] = tile.from;
  const auto [y, down, across] = tile.to;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < tile.channels; ++c) {
    float v[kTileOut][kTileIn];
#pragma GCC unroll 4
    for (int j = 0; j < kTileIn; ++j) {
      const float* const m = x + j * columns + c;
      const float m1 = m[rows], m2 = m[2 * rows];
      v[0][j] = m[0] + m1 + m2;
      v[1][j] = m1 - m2 - m[3 * rows];
    }
#pragma GCC unroll 2
    for (int i = 0; i < kTileOut; ++i) {
      float* const t = y + i * down + c;
      float left = v[i][0] + v[i][1] + v[i][2] + tile.bias[c];
      float right = v[i][1] - v[i][2] - v[i][3] + tile.bias[c];
      if constexpr (add) {
        left += t[0];
        right += t[across];
      }
      if constexpr (relu) {
        left = left < 0 ? 0.f : left;  // NaN stays
        right = right < 0 ? 0.f : right;
      }
      t[0] = left;
      t[across] = right;
    }
  }
}

SCALEMARK_INLINE void transform_output_any(const TransformOutput& tile) {
  if (tile.add)
    tile.relu ? transform_output<true, true>(tile) : transform_output<true, false>(tile);
  else
    tile.relu ? transform_output<false, true>(tile) : transform_output<false, false>(tile);
}

using EightFloats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using SixteenFloats [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;

constexpr std::int64_t kLine = 16;  ///< of the cache, in floats

/// `height` rows by `panels`, whose sums stay in registers.
template <typename Vector, int height, int panels>
SCALEMARK_INLINE void multiply_rows(const MultiplyPanels& product, std::int64_t row) {
  constexpr int kOfPanel = static_cast<int>(kPanel * sizeof(float) / sizeof(Vector));
  constexpr int kVectors = kOfPanel * panels;
  Vector sum[height][kVectors] = {};
  const float* const x = product.x + row * product.depth;
  const auto* panel = reinterpret_cast<const Vector*>(product.panels);
  const std::int64_t apart = product.depth * kOfPanel;
  for (std::int64_t first = 0; first < product.depth; first += kLine) {
    for (int i = 0; i < height; ++i)  // streams too short for the processor to foresee
      __builtin_prefetch(x + (height + i) * product.depth + first);
    const std::int64_t end = std::min(first + kLine, product.depth);
    for (std::int64_t k = first; k < end; ++k, panel += kOfPanel)
#pragma GCC unroll 12
      for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j)
          sum[i][j] += x[i * product.depth + k] * panel[j / kOfPanel * apart + j % kOfPanel];
  }
#pragma GCC unroll 12
  for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j)
      reinterpret_cast<Vector*>(product.y + (row + i) * product.apart)[j] = sum[i][j];
}

/// The last rows are computed with some before them once more.
template <typename Vector, int height, int panels>
SCALEMARK_INLINE void multiply_all_rows(const MultiplyPanels& product) {
  if (product.rows < height) {
    for (std::int64_t row = 0; row < product.rows; ++row)
      multiply_rows<Vector, 1, panels>(product, row);
    return;
  }
  for (std::int64_t row = 0; row < product.rows; row += height)
    multiply_rows<Vector, height, panels>(product, std::min(row, product.rows - height));
}

/// `panels` at once, then those that are left.
template <typename Vector, int height, int panels>
SCALEMARK_INLINE void multiply_panels(MultiplyPanels product) {
  const auto advance = [&](std::int64_t by) {
    product.panels += by * product.depth * kPanel;
    product.y += by * kPanel;
    product.count -= by;
  };
  for (; product.count >= panels; advance(panels))
    multiply_all_rows<Vector, height, panels>(product);
  for (; product.count > 0; advance(1)) multiply_all_rows<Vector, height, 1>(product);
}

SCALEMARK_VECTOR_LOOP void multiply_panels_any(const MultiplyPanels& product) {
  multiply_panels<EightFloats, 6, 1>(product);
}
#ifdef SCALEMARK_AVX512_LOOP
SCALEMARK_AVX512_LOOP void multiply_panels_avx512(const MultiplyPanels& product) {
  multiply_panels<SixteenFloats, 12, 2>(product);
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

void run(const MultiplyPanels& product) {
#ifdef SCALEMARK_AVX512_LOOP
  static const bool avx512 = has_avx512();
  if (avx512) return multiply_panels_avx512(product);
#endif
  multiply_panels_any(product);
}

SCALEMARK_VECTOR_LOOP void run(const TransformInput& tile) { transform_input(tile); }
SCALEMARK_VECTOR_LOOP void run(const TransformFilter& tile) { transform_filter(tile); }
SCALEMARK_VECTOR_LOOP void run(const TransformOutput& tile) { transform_output_any(tile); }

}  // namespace scalemark
