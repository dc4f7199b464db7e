// Computes bf16 matrix products by tiles (tiles.hpp), of which both sides are copied in blocks that
// stay in the caches of a thread.
#include "models/kernels/tiles.hpp"

#ifdef SCALEMARK_HAS_TILES
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <ATen/Parallel.h>

#include <cstdlib>
#include <string_view>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"

namespace scalemark {
namespace {

constexpr double kLeastTiledMultiplyAdds = 1 << 23;  ///< below, oneDNN's are as fast
constexpr std::int64_t kLeastTiledDepth = 32;        ///< less is mostly padding
constexpr std::int64_t kLeastTiledSide = 64;  ///< of a part, to which both sides are copied anew

/// Returns the parts of a result [m, n].
ProductPieces parts_of(std::int64_t m, std::int64_t n) {
  return square_parts(m, n, threads_of_a_loop());
}

}  // namespace

#ifdef SCALEMARK_HAS_TILES
namespace tiles {
namespace {

/// Returns whether nobody told oneDNN, beside whose products these run, to do without: each limit
/// that is set has one of these words in its name.
bool are_allowed(std::initializer_list<std::string_view> words) {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* const set = std::getenv(name);
    const std::string_view most = set ? set : "DEFAULT";
    const auto names = [&](std::string_view word) { return most.find(word) != most.npos; };
    if (most != "DEFAULT" && most != "ALL" && std::ranges::none_of(words, names)) return false;
  }
  return true;
}

bool may_use_pair_products() {
  constexpr unsigned kAvx512Bf16 = 1u << 5;  // CPUID 7, 1
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_avx512() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvx512Bf16) != 0 &&
         are_allowed({"BF16", "FP16", "AMX", "AVX10"});
}

/// Returns whether the processor has the tiles, the kernel lets this process use them, and nobody
/// forbids it.
bool may_use_tiles() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;  // CPUID 7
  constexpr int kRequestPermission = 0x1023, kTileData = 18;    // arch_prctl(2)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_pair_products() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kAmxBf16) != 0 &&
         (d & kAmxTile) != 0 && are_allowed({"AMX"}) &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr std::int64_t kDepth = 1024;    ///< so deep,
constexpr std::int64_t kPanel = 256;     ///< these columns stay in the second cache,
constexpr std::int64_t kStrip = 1024;    ///< and these rows in the third
constexpr std::int64_t kColumns = 2048;  ///< for whose sums there is room

/// Returns the length, in whole blocks, of even parts of a range that are at most `most` long.
std::int64_t even_step(std::int64_t most, std::int64_t count) {
  return part_length(count, divided_up(count, most), kSide);
}

/// Computes some rows and columns of a product on one thread.
class PartOfProduct {
 public:
  PartOfProduct(Range rows, Range columns, std::int64_t depth, const Side& left, const Side& right,
                const Result& to)
      : rows_(rows),
        columns_(columns),
        depth_(depth),
        left_(left),
        right_(right),
        to_(to),
        strip_(even_step(kStrip, rows.size())),
        across_(even_step(kColumns, columns.size())),
        panel_(even_step(kPanel, across_)),
        deep_(even_step(kDepth, depth)),
        of_rows_(at::empty({strip_, deep_}, at::kBFloat16)),
        of_columns_(at::empty({panel_, deep_}, at::kBFloat16)),
        sums_(at::empty({waits() ? strip_ * across_ : kSide * panel_}, at::kFloat)) {}

  void compute() {
    begin_tiles();
    columns_.in_steps(across_, [&](Range columns) {
      rows_.in_steps(strip_, [&](Range rows) {
        Range{0, depth_}.in_steps(deep_, [&](Range k) { add_depth(rows, columns, k); });
      });
    });
    end_tiles();
    if (to_.streams) _mm_sfence();  // another thread may read them next
  }

 private:
  /// Whether sums wait for the rest of the depth.
  bool waits() const { return deep_ < depth_; }

  void add_depth(Range rows, Range columns, Range k) {
    copy_blocks(left_, /*left=*/true, rows, k, bits(of_rows_));
    columns.in_steps(panel_, [&](Range panel) {
      copy_blocks(right_, /*left=*/false, panel, k, bits(of_columns_));
      rows.in_steps(kSide, [&](Range some) {
        float* sums = sums_.mutable_data_ptr<float>();
        if (waits())
          sums += (some.begin - rows.begin) * across_ + (panel.begin - columns.begin) * kSide;
        add_panel((some.begin - rows.begin) / kSide, panel.size(), k, sums);
        for (std::int64_t i = some.begin; k.end == depth_ && i < some.end; ++i)
          write_row(sums, i - some.begin, to_, i, panel.begin, panel.size());
      });
    });
  }

  /// Adds to the sums of 32 rows, the `block` of those that are copied, and of a panel.
  void add_panel(std::int64_t block, std::int64_t columns, Range k, float* sums) {
    const std::int64_t blocks = divided_up(k.size(), kTileDepth), side = blocks * kBlock;
    const Bits* const of_rows = bits(of_rows_) + block * side;
    const Bits* of_columns = bits(of_columns_);
    for (std::int64_t j = 0; j < columns; j += kSide, of_columns += side, sums += kBlockSums)
      multiply_blocks(of_rows, of_columns, blocks, sums, /*add=*/k.begin > 0);
  }

  static Bits* bits(const at::Tensor& x) { return static_cast<Bits*>(x.mutable_data_ptr()); }

  Range rows_, columns_;
  std::int64_t depth_;
  const Side& left_;
  const Side& right_;
  const Result& to_;
  std::int64_t strip_, across_, panel_, deep_;
  at::Tensor of_rows_, of_columns_, sums_;
};

/// Computes all of a product [m, depth] x [depth, n].
void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, const Side& left,
              const Side& right, const Result& to) {
  const ProductPieces parts = parts_of(m, n);
  const std::int64_t height = part_length(m, parts.rows, kSide),
                     width = part_length(n, parts.columns, kSide);
  at::parallel_for(0, parts.rows * parts.columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t i = part / parts.columns * height, j = part % parts.columns * width;
      if (i < m && j < n)
        PartOfProduct({i, std::min(i + height, m)}, {j, std::min(j + width, n)}, depth, left, right,
                      to)
            .compute();
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

}  // namespace
}  // namespace tiles

bool has_pair_products() {
  static const bool has = tiles::may_use_pair_products();
  return has;
}

bool has_tiles() {
  static const bool has = tiles::may_use_tiles();
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
bool has_pair_products() { return false; }
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
  const ProductPieces parts = parts_of(m, n);
  return depth >= kLeastTiledDepth && m / parts.rows >= kLeastTiledSide &&
         n / parts.columns >= kLeastTiledSide &&
         static_cast<double>(a.numel()) * static_cast<double>(n) >= kLeastTiledMultiplyAdds;
}

}  // namespace scalemark
