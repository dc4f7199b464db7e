// Defines how kernels of this folder use the tile registers of AMX: 32 x 32 sums fill four of them,
// two more hold 32 rows of one side of a product and two 32 columns of the other. Both sides are
// copied into blocks of tiles before. Without AMX the same blocks are multiplied by AVX-512's
// products of pairs. Internal to models/.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && __has_include(<amxbf16intrin.h>)
#define SCALEMARK_HAS_TILES
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own intrinsics of AVX-512
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wignored-attributes"  // of a register as an element
#define SCALEMARK_TILES \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")]]

namespace scalemark::tiles {

using Bits = std::uint16_t;  ///< of a bf16

inline constexpr std::int64_t kTileRows = 16, kTileBytes = 64;
inline constexpr std::int64_t kTileDepth = 32;  ///< values of a row
inline constexpr std::int64_t kTile = kTileRows * kTileDepth;
inline constexpr std::int64_t kSide = 32;          ///< rows, and columns, of the sums of a block
inline constexpr std::int64_t kBlock = 2 * kTile;  ///< 32 rows or columns, 32 deep
inline constexpr std::int64_t kSums = 16 * 16;     ///< of a tile
inline constexpr std::int64_t kBlockSums = 4 * kSums;

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, first_row = 0;
  std::array<std::uint8_t, 14> reserved = {};
  std::array<std::uint16_t, 16> row_bytes = {};
  std::array<std::uint8_t, 16> rows = {};
};

/// Makes all eight tiles, where there are any, those of 16 rows of 64 bytes.
SCALEMARK_TILES inline void begin_tiles() {
  if (!has_tiles()) return;
  TileShapes shapes;
  for (std::size_t i = 0; i < 8; ++i) {
    shapes.row_bytes[i] = kTileBytes;
    shapes.rows[i] = kTileRows;
  }
  // GCC's intrinsics of tiles do not say what memory they read.
  asm volatile("" ::"r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

SCALEMARK_TILES inline void end_tiles() {
  if (has_tiles()) _tile_release();
}

/// Copies 16 rows of 32 values.
SCALEMARK_TILES inline void copy_rows(const Bits* from, std::int64_t stride, Bits* tile) {
  for (int i = 0; i < kTileRows; ++i)
    _mm512_storeu_si512(tile + i * kTileDepth, _mm512_loadu_si512(from + i * stride));
}

SCALEMARK_TILES inline __m128i eight_values(const Bits* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

/// Returns 8 values of every fourth of 16 rows.
SCALEMARK_TILES inline __m512i of_every_fourth(const Bits* from, std::int64_t stride) {
  __m512i all = _mm512_castsi128_si512(eight_values(from));
  all = _mm512_mask_broadcast_i32x4(all, 0x00f0, eight_values(from + 4 * stride));
  all = _mm512_mask_broadcast_i32x4(all, 0x0f00, eight_values(from + 8 * stride));
  return _mm512_mask_broadcast_i32x4(all, 0xf000, eight_values(from + 12 * stride));
}

/// Copies 16 rows of 32 values as a tile of their transposed pairs: row k has values 2 k and 2 k +
/// 1 of each row. Half of the exchanges of the transposition are loads.
SCALEMARK_TILES inline void transpose_pairs(const Bits* from, std::int64_t stride, Bits* tile) {
  for (int quarter = 0; quarter < 4; ++quarter, from += 8, tile += 4 * kTileDepth) {
    const __m512i a = of_every_fourth(from, stride), b = of_every_fourth(from + stride, stride),
                  c = of_every_fourth(from + 2 * stride, stride),
                  d = of_every_fourth(from + 3 * stride, stride);
    const __m512i low = _mm512_unpacklo_epi32(a, b), low_next = _mm512_unpacklo_epi32(c, d);
    const __m512i high = _mm512_unpackhi_epi32(a, b), high_next = _mm512_unpackhi_epi32(c, d);
    _mm512_storeu_si512(tile, _mm512_unpacklo_epi64(low, low_next));
    _mm512_storeu_si512(tile + kTileDepth, _mm512_unpackhi_epi64(low, low_next));
    _mm512_storeu_si512(tile + 2 * kTileDepth, _mm512_unpacklo_epi64(high, high_next));
    _mm512_storeu_si512(tile + 3 * kTileDepth, _mm512_unpackhi_epi64(high, high_next));
  }
}

/// Copies 32 rows of 32 values as two tiles of 16 columns each, in which row k has the values of
/// rows 2 k and 2 k + 1 side by side.
SCALEMARK_TILES inline void pair_rows(const Bits* from, std::int64_t stride, Bits* tiles) {
  alignas(64) static constexpr std::array<std::uint16_t, 32> kPairs{
      0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
      8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i first = _mm512_load_si512(kPairs.data());
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  for (int k = 0; k < kTileRows; ++k) {
    const __m512i even = _mm512_loadu_si512(from + 2 * k * stride);
    const __m512i odd = _mm512_loadu_si512(from + (2 * k + 1) * stride);
    Bits* const to = tiles + k * kTileDepth;
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(even, first, odd));
    _mm512_storeu_si512(to + kTile, _mm512_permutex2var_epi16(even, second, odd));
  }
}

struct Range {
  std::int64_t begin, end;

  std::int64_t size() const { return end - begin; }
  /// Calls use(part) for each part of the range, `step` long but for the last one.
  template <typename Use>
  void in_steps(std::int64_t step, const Use& use) const {
    for (std::int64_t i = begin; i < end; i += step) use(Range{i, std::min(i + step, end)});
  }
};

/// One side of a product: a matrix whose rows are `stride` apart, [count, depth], or [depth, count]
/// where it is `by_depth`.
struct Side {
  const Bits* values;
  std::int64_t stride;
  bool by_depth;

  const Bits* at(std::int64_t i, std::int64_t k) const {
    return by_depth ? values + k * stride + i : values + i * stride + k;
  }
};

/// Copies at most 32 rows of the left side, or columns of the right one, at most 32 deep, to a
/// block of two tiles, in which zeros stand for what is missing.
SCALEMARK_TILES inline void copy_block(const Side& side, bool left, Range some, Range k,
                                       Bits* block) {
  const Bits* from = side.at(some.begin, k.begin);
  std::int64_t stride = side.stride;
  alignas(64) std::array<Bits, kSide * kTileDepth> padded;
  if (some.size() < kSide || k.size() < kTileDepth) {
    padded.fill(0);
    const std::int64_t rows = side.by_depth ? k.size() : some.size(),
                       of_row = side.by_depth ? some.size() : k.size();
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(from + row * stride, of_row, padded.data() + row * kSide);
    from = padded.data();
    stride = kSide;
  }
  if (side.by_depth && !left) return pair_rows(from, stride, block);
  if (side.by_depth) {
    alignas(64) std::array<Bits, kBlock> pairs;
    pair_rows(from, stride, pairs.data());
    for (const int half : {0, 1})
      transpose_pairs(pairs.data() + half * kTile, kTileDepth, block + half * kTile);
    return;
  }
  for (const int half : {0, 1}) {
    const Bits* const rows = from + half * kTileRows * stride;
    left ? copy_rows(rows, stride, block + half * kTile)
         : transpose_pairs(rows, stride, block + half * kTile);
  }
}

/// Copies a part of a side to blocks, those of one depth after the other.
inline void copy_blocks(const Side& side, bool left, Range part, Range k, Bits* blocks) {
  const std::int64_t deep = divided_up(k.size(), kTileDepth);
  const auto copy = [&](Range some, Range depth) {
    const std::int64_t block =
        (some.begin - part.begin) / kSide * deep + (depth.begin - k.begin) / kTileDepth;
    copy_block(side, left, some, depth, blocks + block * kBlock);
  };
  if (side.by_depth)  // along its rows
    k.in_steps(kTileDepth,
               [&](Range depth) { part.in_steps(kSide, [&](Range some) { copy(some, depth); }); });
  else
    part.in_steps(kSide, [&](Range some) {
      k.in_steps(kTileDepth, [&](Range depth) { copy(some, depth); });
    });
}

/// Returns where one of 32 rows is in the first of its blocks of sums, and in that of the left side
/// of a product.
inline std::int64_t place_of_sums(std::int64_t row) {
  return row / kTileRows * 2 * kSums + row % kTileRows * 16;
}
inline std::int64_t place_of_left(std::int64_t row) {
  return row / kTileRows * kTile + row % kTileRows * kTileDepth;
}

SCALEMARK_TILES inline __m512bh as_pairs(__m512i bits) {
  return reinterpret_cast<const __m512bh&>(bits);
}

inline constexpr std::int64_t kPairRows = 8;  ///< whose sums stay in registers

/// Computes 8 rows of multiply_blocks() by products of pairs.
SCALEMARK_TILES inline void multiply_pairs(const Bits* rows, const Bits* columns, std::int64_t deep,
                                           float* sums, bool add) {
  std::array<std::array<__m512, 2>, kPairRows> of_rows;
  for (std::int64_t i = 0; i < kPairRows; ++i)
    for (const int half : {0, 1})
      of_rows[i][half] =
          add ? _mm512_load_ps(sums + place_of_sums(i) + half * kSums) : _mm512_setzero_ps();
  for (std::int64_t k = 0; k < deep; ++k, rows += kBlock, columns += kBlock)
    for (std::int64_t pair = 0; pair < kTileDepth / 2; ++pair) {
      const Bits* const row = columns + pair * kTileDepth;
      const __m512bh low = as_pairs(_mm512_load_si512(row)),
                     high = as_pairs(_mm512_load_si512(row + kTile));
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < kPairRows; ++i) {
        std::int32_t both;
        std::memcpy(&both, rows + place_of_left(i) + 2 * pair, sizeof both);
        const __m512bh x = as_pairs(_mm512_set1_epi32(both));
        of_rows[i][0] = _mm512_dpbf16_ps(of_rows[i][0], x, low);
        of_rows[i][1] = _mm512_dpbf16_ps(of_rows[i][1], x, high);
      }
    }
  for (std::int64_t i = 0; i < kPairRows; ++i)
    for (const int half : {0, 1})
      _mm512_store_ps(sums + place_of_sums(i) + half * kSums, of_rows[i][half]);
}

/// Computes 32 x 32 sums of `deep` blocks, or adds to them: four tiles, row by row.
SCALEMARK_TILES inline void multiply_blocks(const Bits* rows, const Bits* columns,
                                            std::int64_t deep, float* sums, bool add) {
  if (!has_tiles()) {
    for (std::int64_t i = 0; i < kSide; i += kPairRows)
      multiply_pairs(rows + place_of_left(i), columns, deep, sums + place_of_sums(i), add);
    return;
  }
  asm volatile("" ::: "memory");  // see begin_tiles()
  if (add) {
    _tile_loadd(0, sums, kTileBytes);
    _tile_loadd(1, sums + kSums, kTileBytes);
    _tile_loadd(2, sums + 2 * kSums, kTileBytes);
    _tile_loadd(3, sums + 3 * kSums, kTileBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t k = 0; k < deep; ++k, rows += kBlock, columns += kBlock) {
    _tile_loadd(6, columns, kTileBytes);
    _tile_loadd(4, rows, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, columns + kTile, kTileBytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, rows + kTile, kTileBytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, kTileBytes);
  _tile_stored(1, sums + kSums, kTileBytes);
  _tile_stored(2, sums + 2 * kSums, kTileBytes);
  _tile_stored(3, sums + 3 * kSums, kTileBytes);
}

/// Where the sums go.
struct Result {
  void* values;          ///< bf16, or fp32
  std::int64_t stride;   ///< between its rows
  bool wide, add, relu;  ///< fp32; adds to what is there; max(., 0) of it all
  const Bits* bias;      ///< [columns], or null
  bool streams;          ///< past the caches: rows of fp32 that begin on 64 bytes
};

SCALEMARK_TILES inline __m512 widened(const Bits* from, __mmask16 mask) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

/// Returns 16 values and 16 more, as bf16.
SCALEMARK_TILES inline __m512i narrowed(__m512 low, __m512 high) {
  const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
  return reinterpret_cast<const __m512i&>(both);
}

/// Returns max(x, 0), and NaN where x is.
SCALEMARK_TILES inline __m512 positive(__m512 x) { return _mm512_max_ps(_mm512_setzero_ps(), x); }

/// Writes row `i` of a result from column `j` on: its sums in blocks, the row `row` of each.
SCALEMARK_TILES inline void write_row(const float* sums, std::int64_t row, const Result& to,
                                      std::int64_t i, std::int64_t j, std::int64_t columns) {
  sums += place_of_sums(row);
  for (; columns > 0; columns -= kSide, j += kSide, sums += kBlockSums) {
    const auto mask = static_cast<__mmask32>(columns >= kSide ? -1 : (1 << columns) - 1);
    const auto low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
    __m512 first = _mm512_load_ps(sums), second = _mm512_load_ps(sums + kSums);
    if (to.bias) {
      first = _mm512_add_ps(first, widened(to.bias + j, low));
      second = _mm512_add_ps(second, widened(to.bias + j + 16, high));
    }
    const std::int64_t place = i * to.stride + j;
    Bits* const narrow = static_cast<Bits*>(to.values) + place;
    float* const y = static_cast<float*>(to.values) + place;
    if (to.add) {
      first = _mm512_add_ps(first, to.wide ? _mm512_maskz_loadu_ps(low, y) : widened(narrow, low));
      second = _mm512_add_ps(
          second, to.wide ? _mm512_maskz_loadu_ps(high, y + 16) : widened(narrow + 16, high));
    }
    if (to.relu) {
      first = positive(first);
      second = positive(second);
    }
    if (!to.wide) {
      _mm512_mask_storeu_epi16(narrow, mask, narrowed(first, second));
      continue;
    }
    if (to.streams && columns >= kSide) {
      _mm512_stream_ps(y, first);
      _mm512_stream_ps(y + 16, second);
      continue;
    }
    _mm512_mask_storeu_ps(y, low, first);
    _mm512_mask_storeu_ps(y + 16, high, second);
  }
}

}  // namespace scalemark::tiles
#pragma GCC diagnostic pop
#endif
