// Computes bf16 matrix products with the tile registers of AMX: 32 x 32 sums fill four of them, two
// more hold 32 rows of one side and two 32 columns of the other. Both sides are copied into tiles,
// in blocks that stay in the caches of a thread.
#include "models/kernels/loops.hpp"

#if defined(__x86_64__) && defined(__linux__) && __has_include(<amxbf16intrin.h>)
#define SCALEMARK_HAS_TILES
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <ATen/Parallel.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "models/kernels/kernels.hpp"

namespace scalemark {
namespace {

constexpr double kLeastTiledMultiplyAdds = 1 << 23;  ///< below, oneDNN's are as fast
constexpr std::int64_t kLeastTiledDepth = 32;        ///< less is mostly padding
constexpr std::int64_t kLeastTiledSide = 64;  ///< of a part, to which both sides are copied anew

/// Returns into how many parts rows and columns of a result [m, n] are cut, one part for each
/// thread: into nearly square ones, of which least is copied.
std::pair<std::int64_t, std::int64_t> parts_of(std::int64_t m, std::int64_t n) {
  const std::int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  std::int64_t down = 1;
  for (std::int64_t of_rows = 2; of_rows <= threads; ++of_rows)
    if (threads % of_rows == 0 &&
        m / of_rows + n * of_rows / threads < m / down + n * down / threads)
      down = of_rows;
  return {down, threads / down};
}

#ifdef SCALEMARK_HAS_TILES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own intrinsics of AVX-512
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define SCALEMARK_TILES \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")]]

/// Returns whether the processor has the tiles, the kernel lets this process use them, and nobody
/// told oneDNN, whose products these replace, to do without.
bool may_use_tiles() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAvx512Bf16 = 1u << 5;  // CPUID 7
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2)
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    if (const char* const most = std::getenv(name);
        most && std::string_view(most).find("AMX") == std::string_view::npos &&
        std::string_view(most) != "DEFAULT")
      return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!has_avx512() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kAmxBf16) ||
      !(d & kAmxTile))
    return false;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & kAvx512Bf16)) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

namespace tiles {

using Bits = std::uint16_t;  ///< of a bf16

constexpr std::int64_t kTileRows = 16, kTileBytes = 64;
constexpr std::int64_t kTileDepth = 32;  ///< values of a row
constexpr std::int64_t kTile = kTileRows * kTileDepth;
constexpr std::int64_t kSide = 32;          ///< rows, and columns, of the sums of a block
constexpr std::int64_t kBlock = 2 * kTile;  ///< 32 rows or columns, 32 deep
constexpr std::int64_t kSums = 16 * 16;     ///< of a tile
constexpr std::int64_t kBlockSums = 4 * kSums;
constexpr std::int64_t kDepth = 1024;    ///< so deep,
constexpr std::int64_t kPanel = 256;     ///< these columns stay in the second cache,
constexpr std::int64_t kStrip = 1024;    ///< and these rows in the third
constexpr std::int64_t kColumns = 2048;  ///< for whose sums there is room

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, first_row = 0;
  std::array<std::uint8_t, 14> reserved = {};
  std::array<std::uint16_t, 16> row_bytes = {};
  std::array<std::uint8_t, 16> rows = {};
};

/// Makes all eight tiles those of 16 rows of 64 bytes.
SCALEMARK_TILES void begin_tiles() {
  TileShapes shapes;
  for (std::size_t i = 0; i < 8; ++i) {
    shapes.row_bytes[i] = kTileBytes;
    shapes.rows[i] = kTileRows;
  }
  // GCC's intrinsics of tiles do not say what memory they read.
  asm volatile("" ::"r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

SCALEMARK_TILES void end_tiles() { _tile_release(); }

/// Copies 16 rows of 32 values.
SCALEMARK_TILES void copy_rows(const Bits* from, std::int64_t stride, Bits* tile) {
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
SCALEMARK_TILES void transpose_pairs(const Bits* from, std::int64_t stride, Bits* tile) {
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
SCALEMARK_TILES void pair_rows(const Bits* from, std::int64_t stride, Bits* tiles) {
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

/// Copies `count` <= 32 by `depth` <= 32 values from (i, k) on to a block of two tiles, in which
/// zeros stand for what is missing: rows of the left side, or columns of the right one.
SCALEMARK_TILES void copy_block(const Side& side, bool left, std::int64_t i, std::int64_t count,
                                std::int64_t k, std::int64_t depth, Bits* block) {
  const Bits* from = side.at(i, k);
  std::int64_t stride = side.stride;
  alignas(64) std::array<Bits, kSide * kTileDepth> padded;
  if (count < kSide || depth < kTileDepth) {
    padded.fill(0);
    const std::int64_t rows = side.by_depth ? depth : count, of_row = side.by_depth ? count : depth;
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
void copy_blocks(const Side& side, bool left, std::int64_t begin, std::int64_t end, std::int64_t k,
                 std::int64_t k_end, Bits* blocks) {
  const std::int64_t deep = divided_up(k_end - k, kTileDepth);
  const auto copy = [&](std::int64_t i, std::int64_t d) {
    const std::int64_t at = k + d * kTileDepth;
    copy_block(side, left, i, std::min(kSide, end - i), at, std::min(kTileDepth, k_end - at),
               blocks + ((i - begin) / kSide * deep + d) * kBlock);
  };
  if (side.by_depth)  // along its rows
    for (std::int64_t d = 0; d < deep; ++d)
      for (std::int64_t i = begin; i < end; i += kSide) copy(i, d);
  else
    for (std::int64_t i = begin; i < end; i += kSide)
      for (std::int64_t d = 0; d < deep; ++d) copy(i, d);
}

/// Computes 32 x 32 sums of `deep` blocks, or adds to them: four tiles, row by row.
SCALEMARK_TILES void multiply_blocks(const Bits* rows, const Bits* columns, std::int64_t deep,
                                     float* sums, bool add) {
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

/// Returns max(x, 0), and NaN where x is.
SCALEMARK_TILES inline __m512 positive(__m512 x) { return _mm512_max_ps(_mm512_setzero_ps(), x); }

/// Writes row `i` of a result from column `j` on: its sums in blocks, the row `row` of each.
SCALEMARK_TILES void write_row(const float* sums, std::int64_t row, const Result& to,
                               std::int64_t i, std::int64_t j, std::int64_t columns) {
  sums += row / kTileRows * 2 * kSums + row % kTileRows * 16;
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
      const __m512bh pairs = _mm512_cvtne2ps_pbh(second, first);
      _mm512_mask_storeu_epi16(narrow, mask, reinterpret_cast<const __m512i&>(pairs));
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

/// Rows [row, row_end) x columns [column, column_end) of a result.
struct TiledPart {
  std::int64_t row, row_end, column, column_end;
};

/// Computes a part on this thread.
void multiply_part(const TiledPart& part, std::int64_t depth, const Side& left, const Side& right,
                   const Result& to) {
  const auto up_to = [](std::int64_t most, std::int64_t count) {  // evenly, in whole blocks
    return divided_up(divided_up(count, divided_up(count, most)), kSide) * kSide;
  };
  const std::int64_t deep = up_to(kDepth, depth);
  const std::int64_t strip = up_to(kStrip, part.row_end - part.row),
                     across = up_to(kColumns, part.column_end - part.column),
                     width = up_to(kPanel, across);
  const bool waits = deep < depth;                         // sums of parts of the depth
  const std::int64_t of_row = waits ? across / kSide : 0;  // blocks of sums that wait
  const at::Tensor rows = at::empty({strip, deep}, at::kBFloat16),
                   columns = at::empty({width, deep}, at::kBFloat16),
                   sums = at::empty({std::max(of_row * strip / kSide, width / kSide), kBlockSums},
                                    at::kFloat);
  Bits* const of_rows = static_cast<Bits*>(rows.mutable_data_ptr());
  Bits* const of_columns = static_cast<Bits*>(columns.mutable_data_ptr());
  float* const all_sums = sums.mutable_data_ptr<float>();
  begin_tiles();
  for (std::int64_t begin = part.column; begin < part.column_end; begin += across) {
    const std::int64_t end = std::min(begin + across, part.column_end);
    for (std::int64_t top = part.row; top < part.row_end; top += strip) {
      const std::int64_t bottom = std::min(top + strip, part.row_end);
      for (std::int64_t k = 0; k < depth; k += deep) {
        const std::int64_t k_end = std::min(k + deep, depth);
        const std::int64_t blocks = divided_up(k_end - k, kTileDepth);
        copy_blocks(left, /*left=*/true, top, bottom, k, k_end, of_rows);
        for (std::int64_t j = begin; j < end; j += width) {
          const std::int64_t j_end = std::min(j + width, end);
          copy_blocks(right, /*left=*/false, j, j_end, k, k_end, of_columns);
          for (std::int64_t i = top; i < bottom; i += kSide) {
            float* const here =
                all_sums +
                ((i - top) / kSide * of_row + (waits ? (j - begin) / kSide : 0)) * kBlockSums;
            const Bits* const row = of_rows + (i - top) / kSide * blocks * kBlock;
            for (std::int64_t c = 0; c < divided_up(j_end - j, kSide); ++c)
              multiply_blocks(row, of_columns + c * blocks * kBlock, blocks, here + c * kBlockSums,
                              k > 0);
            for (std::int64_t r = 0; k_end == depth && r < std::min(kSide, bottom - i); ++r)
              write_row(here, r, to, i + r, j, j_end - j);
          }
        }
      }
    }
  }
  end_tiles();
  if (to.streams) _mm_sfence();  // another thread may read them next
}

/// Computes all of a product [m, depth] x [depth, n].
void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, const Side& left,
              const Side& right, const Result& to) {
  const auto [down, across] = parts_of(m, n);
  const std::int64_t height = divided_up(divided_up(m, down), kSide) * kSide,
                     width = divided_up(divided_up(n, across), kSide) * kSide;
  at::parallel_for(0, down * across, 1, [&, across = across](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t row = part / across * height, column = part % across * width;
      if (row < m && column < n)
        multiply_part({row, std::min(row + height, m), column, std::min(column + width, n)}, depth,
                      left, right, to);
    }
  });
}

/// Returns the side whose [count, depth] is `x`, one of whose strides is 1.
Side side_of(const at::Tensor& x) {
  const bool by_depth = x.stride(1) != 1;
  return {static_cast<const Bits*>(x.const_data_ptr()), x.stride(by_depth ? 1 : 0), by_depth};
}

/// Returns whether rows [rows, columns] of fp32 can be written past the caches.
bool has_aligned_rows(const at::Tensor& x) {
  constexpr std::int64_t kFloats = kTileBytes / static_cast<std::int64_t>(sizeof(float));
  return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kTileBytes == 0 &&
         x.stride(0) % kFloats == 0;
}

}  // namespace tiles
#pragma GCC diagnostic pop
#endif

}  // namespace

#ifdef SCALEMARK_HAS_TILES
bool has_tiles() {
  static const bool has = may_use_tiles();
  return has;
}

void tile_product(at::Tensor& to, bool add, const at::Tensor& a, const at::Tensor& b,
                  const at::Tensor& bias, bool relu) {
  const bool wide = to.scalar_type() == at::kFloat;
  const tiles::Result result{
      to.mutable_data_ptr(),
      to.stride(0),
      wide,
      add,
      relu,
      bias.defined() ? static_cast<const tiles::Bits*>(bias.const_data_ptr()) : nullptr,
      wide && !add && tiles::has_aligned_rows(to)};
  as_operator("scalemark::mm", {a, b}, [&] {
    tiles::multiply(a.size(0), b.size(1), a.size(1), tiles::side_of(a), tiles::side_of(b.t()),
                    result);
    return to;
  });
}
#else
bool has_tiles() { return false; }
void tile_product(at::Tensor&, bool, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                  bool) {}
#endif

bool suits_tiles(const at::Tensor& a, const at::Tensor& b) {
  const auto fits = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kBFloat16 && (x.stride(0) == 1 || x.stride(1) == 1);
  };
  if (!has_tiles() || !fits(a) || !fits(b)) return false;
  const std::int64_t m = a.size(0), depth = a.size(1), n = b.size(1);
  const auto [down, across] = parts_of(m, n);
  return depth >= kLeastTiledDepth && m / down >= kLeastTiledSide &&
         n / across >= kLeastTiledSide &&
         static_cast<double>(a.numel()) * static_cast<double>(n) >= kLeastTiledMultiplyAdds;
}

}  // namespace scalemark
