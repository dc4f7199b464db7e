// Computes attention in bf16 by blocks (tiles.hpp) without keeping scores. A thread takes a head,
// and of it 32 targets at a time, whose scores stay in its caches. The way back makes the scores
// again, for a panel of sources after the other.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "models/kernels/tiles.hpp"

namespace scalemark {

#ifdef SCALEMARK_HAS_TILES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own intrinsics of AVX-512
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
namespace tiles {
namespace {

constexpr float kLog2OfE = 1.44269504f;
constexpr std::int64_t kSources = 256;  ///< of a panel, whose probabilities stay in the caches

std::int64_t blocks_of(std::int64_t count) { return divided_up(count, kSide); }

/// Blocks of one thread: of bf16 values, or of fp32 sums.
template <typename T>
class Blocks {
 public:
  explicit Blocks(std::int64_t count)
      : memory_(
            at::empty({count, kOfBlock}, std::is_same_v<T, float> ? at::kFloat : at::kBFloat16)),
        begin_(static_cast<T*>(memory_.mutable_data_ptr())) {}
  T* at(std::int64_t block) const { return begin_ + block * kOfBlock; }

 private:
  static constexpr std::int64_t kOfBlock = std::is_same_v<T, float> ? kBlockSums : kBlock;
  at::Tensor memory_;
  T* begin_;
};

/// A row of scores, which are logarithms to the base 2: its products of the query and the keys, in
/// 16 columns of each tile of sums, and what is done to them.
struct TiledRow {
  const float* products;  ///< at the row's place in the first block
  float scale;
  const float* mask;     ///< to the base e, added to the scaled products, or null
  const float* factors;  ///< of dropout, or null
  std::int64_t visible;  ///< columns; the probabilities of others are 0
};

/// Returns the lanes of 16 columns from `column` on that lie below `count`.
SCALEMARK_TILES inline __mmask16 lanes_below(std::int64_t count, std::int64_t column) {
  const std::int64_t left = count - column;
  return static_cast<__mmask16>(left >= 16 ? 0xffff : left <= 0 ? 0 : (1 << left) - 1);
}

/// Returns where 16 columns of a row of blocks of sums are.
inline std::int64_t place_of(std::int64_t column) {
  return column / kSide * kBlockSums + column % kSide / 16 * kSums;
}

/// Returns 16 scores, less `less`.
SCALEMARK_TILES inline __m512 scores(const TiledRow& row, std::int64_t column, __mmask16 lanes,
                                     __m512 less) {
  const __m512 product = _mm512_load_ps(row.products + place_of(column));
  if (row.mask)
    less = _mm512_fnmadd_ps(_mm512_maskz_loadu_ps(lanes, row.mask + column),
                            _mm512_set1_ps(kLog2OfE), less);
  return _mm512_fmsub_ps(product, _mm512_set1_ps(row.scale), less);
}

SCALEMARK_TILES inline __m512 without_dropped(const TiledRow& row, std::int64_t column,
                                              __mmask16 lanes, __m512 x) {
  return row.factors ? _mm512_mul_ps(x, _mm512_maskz_loadu_ps(lanes, row.factors + column)) : x;
}

/// Returns 2^x within 3e-6 of itself, and 0 in other lanes.
SCALEMARK_TILES inline __m512 power_of_two(__m512 x, __mmask16 lanes) {
  const __m512 rest = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);  // less floor(x); 0 of infinity
  __m512 p = _mm512_set1_ps(0.0135341679f);                        // least greatest error of 2^rest
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(0.0520114606f));
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(0.241442757f));
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(0.693003834f));
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(1.00000259f));
  return _mm512_maskz_scalef_ps(lanes, p, x);
}

/// Returns the values of two rows side by side, as bf16.
SCALEMARK_TILES inline __m512i paired(__m512 even, __m512 odd) {
  alignas(64) static constexpr std::array<std::uint16_t, 32> kPairs{
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kPairs.data()), narrowed(even, odd));
}

/// Of a row of scores.
struct ExponentialSum {
  float highest, sum;  ///< score; of powers of two of scores less that one
};

/// Writes 2^(score - highest), of which dropout may leave nothing, as a row of the left side of a
/// product: `to` is its place in the first of `blocks` blocks.
SCALEMARK_TILES ExponentialSum write_exponentials(const TiledRow& row, std::int64_t blocks,
                                                  Bits* to) {
  __m512 most = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (std::int64_t j = 0; j < row.visible; j += 16) {
    const __mmask16 lanes = lanes_below(row.visible, j);
    most = _mm512_mask_max_ps(most, lanes, most, scores(row, j, lanes, _mm512_setzero_ps()));
  }
  const float highest = _mm512_reduce_max_ps(most);
  const __m512 top = _mm512_set1_ps(highest);
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t j = 0; j < blocks * kSide; j += kSide, to += kBlock) {
    const __mmask16 low = lanes_below(row.visible, j), high = lanes_below(row.visible, j + 16);
    const __m512 first = power_of_two(scores(row, j, low, top), low);
    const __m512 second = power_of_two(scores(row, j + 16, high, top), high);
    sum = _mm512_add_ps(sum, _mm512_add_ps(first, second));
    _mm512_store_si512(to, narrowed(without_dropped(row, j, low, first),
                                    without_dropped(row, j + 16, high, second)));
  }
  return {highest, _mm512_reduce_add_ps(sum)};
}

/// A row on the way back.
struct GradientRow {
  TiledRow scores;
  const float* gradients;  ///< of what dropout left of the probabilities, as `scores.products`
  float log_sum;           ///< to the base 2, of the sum of powers of two of the scores
  float of_all;            ///< sum of the products of the row's result and its gradient, scaled
  float scale;             ///< of the products of the query and the keys
};

/// Of 16 columns of a row.
struct RowGradients {
  __m512 left;    ///< what dropout left of the probabilities
  __m512 scores;  ///< gradients of the products of the query and the keys
};

SCALEMARK_TILES inline RowGradients gradients_of(const GradientRow& row, std::int64_t column) {
  const __mmask16 lanes = lanes_below(row.scores.visible, column);
  const __m512 probabilities =
      power_of_two(scores(row.scores, column, lanes, _mm512_set1_ps(row.log_sum)), lanes);
  const __m512 upstream =
      without_dropped(row.scores, column, lanes, _mm512_load_ps(row.gradients + place_of(column)));
  const __m512 scaled =
      _mm512_fmsub_ps(upstream, _mm512_set1_ps(row.scale), _mm512_set1_ps(row.of_all));
  return {without_dropped(row.scores, column, lanes, probabilities),
          _mm512_mul_ps(probabilities, scaled)};
}

/// Where two rows of gradients of scores, and of what dropout left of probabilities, go.
struct GradientPlaces {
  Bits *even, *odd;      ///< rows of the left side of a product, in the first block
  Bits *scores, *left;   ///< a row of pairs of the right sides of two products
  std::int64_t to_next;  ///< from a block of the right sides to that of the next columns
};

SCALEMARK_TILES void write_gradients(const GradientRow& even, const GradientRow& odd,
                                     std::int64_t blocks, GradientPlaces to) {
  for (std::int64_t j = 0; j < blocks * kSide; j += kSide) {
    const RowGradients a = gradients_of(even, j), b = gradients_of(odd, j);
    const RowGradients c = gradients_of(even, j + 16), d = gradients_of(odd, j + 16);
    _mm512_store_si512(to.even, narrowed(a.scores, c.scores));
    _mm512_store_si512(to.odd, narrowed(b.scores, d.scores));
    _mm512_store_si512(to.scores, paired(a.scores, b.scores));
    _mm512_store_si512(to.scores + kTile, paired(c.scores, d.scores));
    _mm512_store_si512(to.left, paired(a.left, b.left));
    _mm512_store_si512(to.left + kTile, paired(c.left, d.left));
    to.even += kBlock;
    to.odd += kBlock;
    to.scores += to.to_next;
    to.left += to.to_next;
  }
}

/// Multiplies a row of blocks of sums.
SCALEMARK_TILES void scale_row(float* sums, std::int64_t row, std::int64_t columns, float factor) {
  sums += place_of_sums(row);
  for (std::int64_t j = 0; j < columns; j += 16) {
    float* const some = sums + place_of(j);
    _mm512_store_ps(some, _mm512_mul_ps(_mm512_load_ps(some), _mm512_set1_ps(factor)));
  }
}

/// Transposes a block of sums.
SCALEMARK_TILES void transpose_sums(const float* from, float* to) {
  for (const std::int64_t i : {0, 1})
    for (const std::int64_t j : {0, 1})
      transpose_pairs(reinterpret_cast<const Bits*>(from + (2 * i + j) * kSums), kTileDepth,
                      reinterpret_cast<Bits*>(to + (2 * j + i) * kSums));
}

/// Returns the sum of the products of two rows of bf16, whose length is a multiple of 32.
SCALEMARK_TILES float product_of_rows(const Bits* a, const Bits* b, std::int64_t length) {
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < length; k += kTileDepth) {
    const __m512i some = _mm512_loadu_si512(a + k), others = _mm512_loadu_si512(b + k);
    sum = _mm512_dpbf16_ps(sum, reinterpret_cast<const __m512bh&>(some),
                           reinterpret_cast<const __m512bh&>(others));
  }
  return _mm512_reduce_add_ps(sum);
}

/// Returns where the rows of a head of x [batch, heads, length, depth] begin.
std::int64_t offset_of(const at::Tensor& x, std::int64_t sample, std::int64_t head) {
  return sample * x.stride(0) + head * x.stride(1);
}

/// Returns the rows of a head of x [batch, heads, length, depth], whose last stride is 1.
Side head_of(const at::Tensor& x, std::int64_t sample, std::int64_t head) {
  return {static_cast<const Bits*>(x.const_data_ptr()) + offset_of(x, sample, head), x.stride(2),
          /*by_depth=*/false};
}

/// The same as the other side of a product with the depth of the rows.
Side turned(const Side& side) { return {side.values, side.stride, !side.by_depth}; }

Result result_of(at::Tensor& x, std::int64_t sample, std::int64_t head) {
  return {static_cast<Bits*>(x.mutable_data_ptr()) + offset_of(x, sample, head),
          x.stride(2),
          /*wide=*/false,
          /*add=*/false,
          /*relu=*/false,
          /*bias=*/nullptr,
          /*streams=*/false};
}

/// Returns x [batch, heads, length, depth] with the values of a row side by side.
at::Tensor with_rows(const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

/// What is computed: inputs, and what their scores are masked and multiplied with.
struct Attention {
  at::Tensor queries, keys, values;  ///< [batch, heads or key heads, length, depth]
  at::Tensor mask;                   ///< fp32 [batch, heads, targets, sources], or undefined
  bool causal;
  std::optional<DropFactors> factors;
  std::int64_t heads, heads_of_a_key, targets, sources, depth;
  float scale;  ///< of the products of queries and keys

  Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::Tensor hidden,
            bool is_causal, std::int64_t key, double drop_probability)
      : queries(with_rows(q)),
        keys(with_rows(k)),
        values(with_rows(v)),
        mask(std::move(hidden)),
        causal(is_causal),
        heads(q.size(1)),
        heads_of_a_key(heads / k.size(1)),
        targets(q.size(2)),
        sources(k.size(2)),
        depth(q.size(3)),
        scale(1 / std::sqrt(static_cast<float>(depth))) {
    if (drop_probability > 0) factors.emplace(key, drop_probability);
  }

  /// Returns the number of blocks of sources of which the `block`th 32 targets see some.
  std::int64_t seen_by(std::int64_t block) const {
    const std::int64_t all = blocks_of(sources);
    return causal ? std::min(all, block + 1) : all;
  }

  /// Returns the place of a row among those of all heads.
  std::int64_t index_of(std::int64_t sample, std::int64_t head, std::int64_t target) const {
    return (sample * heads + head) * targets + target;
  }

  /// Returns a row of scores, whose products with `some` sources are in blocks from `products` on.
  TiledRow row(std::int64_t sample, std::int64_t head, std::int64_t target, Range some,
               const float* products, std::vector<float>& buffer) const {
    const std::int64_t visible = (causal ? target + 1 : sources) - some.begin;
    TiledRow found{products + place_of_sums(target % kSide), scale * kLog2OfE, nullptr, nullptr,
                   std::clamp<std::int64_t>(visible, 0, some.size())};
    if (mask.defined())
      found.mask = static_cast<const float*>(mask.const_data_ptr()) +
                   offset_of(mask, sample, head) + target * mask.stride(2) + some.begin;
    if (factors)
      found.factors =
          factors->of(index_of(sample, head, target) * sources + some.begin, some.size(), buffer);
    return found;
  }
};

/// Copies all rows of a side to blocks.
void copy_all(const Side& side, bool left, std::int64_t rows, std::int64_t depth,
              const Blocks<Bits>& to) {
  copy_blocks(side, left, {0, rows}, {0, depth}, to.at(0));
}

/// Computes results and, for each of their rows, the logarithm to the base 2 of the sum of the
/// powers of two of its scores.
class ForwardHeads {
 public:
  explicit ForwardHeads(const Attention& all)
      : all_(all),
        deep_(blocks_of(all.depth)),
        of_sources_(blocks_of(all.sources)),
        queries_(deep_),
        keys_(of_sources_ * deep_),
        values_(of_sources_ * deep_),
        probabilities_(of_sources_),
        scores_(of_sources_),
        sums_(deep_) {}

  void compute(std::int64_t sample, std::int64_t key_head, at::Tensor& y, float* log_sums) {
    const std::int64_t depth = all_.depth, targets = all_.targets, sources = all_.sources;
    copy_all(head_of(all_.keys, sample, key_head), /*left=*/false, sources, depth, keys_);
    copy_all(turned(head_of(all_.values, sample, key_head)), /*left=*/false, depth, sources,
             values_);
    for (std::int64_t of_key = 0; of_key < all_.heads_of_a_key; ++of_key) {
      const std::int64_t head = key_head * all_.heads_of_a_key + of_key;
      const Side queries = head_of(all_.queries, sample, head);
      const Result to = result_of(y, sample, head);
      float* const of_head = log_sums + all_.index_of(sample, head, 0);
      Range{0, targets}.in_steps(kSide, [&](Range some) {
        copy_blocks(queries, /*left=*/true, some, {0, depth}, queries_.at(0));
        add_targets(sample, head, some, to, of_head);
      });
    }
  }

 private:
  void add_targets(std::int64_t sample, std::int64_t head, Range some, const Result& to,
                   float* log_sums) {
    const std::int64_t blocks = all_.seen_by(some.begin / kSide);
    for (std::int64_t j = 0; j < blocks; ++j)
      multiply_blocks(queries_.at(0), keys_.at(j * deep_), deep_, scores_.at(j), /*add=*/false);
    std::array<float, kSide> inverse{};
    for (std::int64_t i = some.begin; i < some.end; ++i) {
      const std::int64_t row = i - some.begin;
      const ExponentialSum of_row =
          write_exponentials(all_.row(sample, head, i, {0, all_.sources}, scores_.at(0), factors_),
                             blocks, probabilities_.at(0) + place_of_left(row));
      log_sums[i] = of_row.highest + std::log2(of_row.sum);
      inverse[static_cast<std::size_t>(row)] = 1 / of_row.sum;
    }
    for (std::int64_t d = 0; d < deep_; ++d)
      multiply_blocks(probabilities_.at(0), values_.at(d * of_sources_), blocks, sums_.at(d),
                      /*add=*/false);
    for (std::int64_t i = some.begin; i < some.end; ++i) {
      const std::int64_t row = i - some.begin;
      scale_row(sums_.at(0), row, all_.depth, inverse[static_cast<std::size_t>(row)]);
      write_row(sums_.at(0), row, to, i, 0, all_.depth);
    }
  }

  const Attention& all_;
  std::int64_t deep_, of_sources_;  ///< blocks of the depth, and of sources
  Blocks<Bits> queries_, keys_, values_, probabilities_;
  Blocks<float> scores_, sums_;
  std::vector<float> factors_;
};

/// What the way back is given and writes.
struct AttentionGradients {
  at::Tensor y, dy;       ///< [batch, heads, targets, depth]
  const float* log_sums;  ///< [batch, heads, targets]
  at::Tensor dq, dk, dv;  ///< as queries, keys and values
};

/// Computes gradients. Those of keys and values are sums over targets, and are computed as
/// transposed matrices, so that the scores' gradients, and probabilities, are the right side of
/// such products: they become so by pairing rows, while the left side would be their transposition.
class BackwardHeads {
 public:
  BackwardHeads(const Attention& all, AttentionGradients& of)
      : all_(all),
        of_(of),
        deep_(blocks_of(all.depth)),
        of_targets_(blocks_of(all.targets)),
        of_sources_(blocks_of(all.sources)),
        panel_(std::min(of_sources_, blocks_of(kSources))),
        queries_(of_targets_ * deep_),
        turned_queries_(of_targets_ * deep_),
        upstream_(of_targets_ * deep_),
        turned_upstream_(of_targets_ * deep_),
        keys_(of_sources_ * deep_),
        turned_keys_(of_sources_ * deep_),
        values_(of_sources_ * deep_),
        row_gradients_(panel_),
        score_gradients_(panel_ * of_targets_),
        probabilities_(panel_ * of_targets_),
        scores_(panel_),
        gradients_(panel_),
        dq_(of_targets_ * deep_),
        dk_(of_sources_ * deep_),
        dv_(of_sources_ * deep_),
        transposed_(deep_),
        of_all_(static_cast<std::size_t>(all.targets)) {}

  void compute(std::int64_t sample, std::int64_t key_head) {
    const std::int64_t depth = all_.depth, targets = all_.targets, sources = all_.sources;
    const Side keys = head_of(all_.keys, sample, key_head);
    copy_all(keys, /*left=*/false, sources, depth, keys_);
    copy_all(turned(keys), /*left=*/false, depth, sources, turned_keys_);
    copy_all(head_of(all_.values, sample, key_head), /*left=*/false, sources, depth, values_);
    for (std::int64_t of_key = 0; of_key < all_.heads_of_a_key; ++of_key) {
      const std::int64_t head = key_head * all_.heads_of_a_key + of_key;
      const Side queries = head_of(all_.queries, sample, head);
      const Side dy = head_of(of_.dy, sample, head), y = head_of(of_.y, sample, head);
      copy_all(queries, /*left=*/true, targets, depth, queries_);
      copy_all(turned(queries), /*left=*/true, depth, targets, turned_queries_);
      copy_all(dy, /*left=*/true, targets, depth, upstream_);
      copy_all(turned(dy), /*left=*/true, depth, targets, turned_upstream_);
      for (std::int64_t i = 0; i < targets; ++i)
        of_all_[static_cast<std::size_t>(i)] =
            all_.scale * product_of_rows(y.at(i, 0), dy.at(i, 0), depth);
      for (std::int64_t first = 0; first < of_sources_; first += panel_) {
        const std::int64_t end = std::min(first + panel_, of_sources_);
        for (std::int64_t i = all_.causal ? first : 0; i < of_targets_; ++i)
          add_targets(sample, head, i, first, std::min(end, all_.seen_by(i)));
        for (std::int64_t j = first; j < end; ++j) add_sources(j, j - first, /*add=*/of_key > 0);
      }
      const Result dq = result_of(of_.dq, sample, head);
      for (std::int64_t i = 0; i < targets; ++i)
        write_row(dq_.at(i / kSide * deep_), i % kSide, dq, i, 0, depth);
    }
    write_transposed(dk_, result_of(of_.dk, sample, key_head));
    write_transposed(dv_, result_of(of_.dv, sample, key_head));
  }

 private:
  /// Computes what the blocks [first, end) of sources take part in for the `i`th 32 targets.
  void add_targets(std::int64_t sample, std::int64_t head, std::int64_t i, std::int64_t first,
                   std::int64_t end) {
    for (std::int64_t j = first; j < end; ++j) {
      multiply_blocks(queries_.at(i * deep_), keys_.at(j * deep_), deep_, scores_.at(j - first),
                      /*add=*/false);
      multiply_blocks(upstream_.at(i * deep_), values_.at(j * deep_), deep_,
                      gradients_.at(j - first), /*add=*/false);
    }
    const Range sources{first * kSide, std::min(end * kSide, all_.sources)};
    for (std::int64_t row = 0; row < kSide; row += 2) {
      const GradientRow even = row_at(sample, head, i * kSide + row, sources, factors_[0]);
      const GradientRow odd = row_at(sample, head, i * kSide + row + 1, sources, factors_[1]);
      Bits* const left = row_gradients_.at(0) + place_of_left(row);
      const std::int64_t pair = row / 2 * kTileDepth;
      write_gradients(even, odd, end - first,
                      {left, left + kTileDepth, score_gradients_.at(i) + pair,
                       probabilities_.at(i) + pair, of_targets_ * kBlock});
    }
    for (std::int64_t d = 0; d < deep_; ++d)
      multiply_blocks(row_gradients_.at(0), turned_keys_.at(d * of_sources_ + first), end - first,
                      dq_.at(i * deep_ + d), /*add=*/first > 0);
  }

  /// Returns a row that sees nothing where there is no such target.
  GradientRow row_at(std::int64_t sample, std::int64_t head, std::int64_t target, Range sources,
                     std::vector<float>& factors) const {
    if (target >= all_.targets)
      return {{scores_.at(0), 0, nullptr, nullptr, 0}, gradients_.at(0), 0, 0, 0};
    const TiledRow scores = all_.row(sample, head, target, sources, scores_.at(0), factors);
    return {scores, gradients_.at(0) + (scores.products - scores_.at(0)),
            of_.log_sums[all_.index_of(sample, head, target)],
            of_all_[static_cast<std::size_t>(target)], all_.scale};
  }

  /// Computes the gradients of the `j`th 32 keys and values, of which the targets' are complete.
  void add_sources(std::int64_t j, std::int64_t of_panel, bool add) {
    const std::int64_t first = all_.causal ? j : 0, place = of_panel * of_targets_ + first;
    for (std::int64_t d = 0; d < deep_; ++d) {
      multiply_blocks(turned_queries_.at(d * of_targets_ + first), score_gradients_.at(place),
                      of_targets_ - first, dk_.at(j * deep_ + d), add);
      multiply_blocks(turned_upstream_.at(d * of_targets_ + first), probabilities_.at(place),
                      of_targets_ - first, dv_.at(j * deep_ + d), add);
    }
  }

  void write_transposed(const Blocks<float>& sums, const Result& to) const {
    for (std::int64_t i = 0; i < all_.sources; ++i) {
      for (std::int64_t d = 0; i % kSide == 0 && d < deep_; ++d)
        transpose_sums(sums.at(i / kSide * deep_ + d), transposed_.at(d));
      write_row(transposed_.at(0), i % kSide, to, i, 0, all_.depth);
    }
  }

  const Attention& all_;
  AttentionGradients& of_;
  /// Blocks of the depth, of targets, of sources, and of those of a panel.
  std::int64_t deep_, of_targets_, of_sources_, panel_;
  Blocks<Bits> queries_, turned_queries_, upstream_, turned_upstream_, keys_, turned_keys_, values_;
  /// Of 32 targets as a left side; of all targets, and what dropout leaves, as right sides.
  Blocks<Bits> row_gradients_, score_gradients_, probabilities_;
  Blocks<float> scores_, gradients_, dq_, dk_, dv_, transposed_;
  std::vector<float> of_all_;
  std::array<std::vector<float>, 2> factors_;
};

/// Calls compute(heads, sample, key head) for all key heads of all samples, where `heads` is made
/// by make() for each thread.
template <typename Make, typename Compute>
void for_each_key_head(const at::Tensor& keys, const Make& make, const Compute& compute) {
  const std::int64_t heads = keys.size(1);
  at::parallel_for(0, keys.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    auto of_thread = make();
    begin_tiles();
    for (std::int64_t i = begin; i < end; ++i) compute(of_thread, i / heads, i % heads);
    end_tiles();
  });
}

class TiledAttention : public torch::autograd::Function<TiledAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& queries,
                            const at::Tensor& keys, const at::Tensor& values,
                            const std::optional<at::Tensor>& mask, bool causal, std::int64_t key,
                            double probability) {
    const Attention all(queries, keys, values, mask.value_or(at::Tensor()), causal, key,
                        probability);
    const std::int64_t batch = queries.size(0);
    at::Tensor y = at::empty({batch, all.targets, all.heads, all.depth}, queries.options());
    y = y.transpose(1, 2);
    at::Tensor log_sums = at::empty({batch, all.heads, all.targets}, at::kFloat);
    as_operator("scalemark::attention", {queries, keys, values}, [&] {
      for_each_key_head(
          all.keys, [&] { return ForwardHeads(all); },
          [&, sums = log_sums.mutable_data_ptr<float>()](ForwardHeads& here, auto... where) {
            here.compute(where..., y, sums);
          });
      return y;
    });
    context->save_for_backward({queries, keys, values, all.mask, y, log_sums});
    context->saved_data["causal"] = causal;
    context->saved_data["key"] = key;
    context->saved_data["probability"] = probability;
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const Attention all(saved[0], saved[1], saved[2], saved[3],
                        context->saved_data["causal"].toBool(), context->saved_data["key"].toInt(),
                        context->saved_data["probability"].toDouble());
    const auto like = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
    AttentionGradients of{
        saved[4],          with_rows(upstream[0]), saved[5].const_data_ptr<float>(),
        like(all.queries), like(all.keys),         like(all.values)};
    as_operator("scalemark::attention_backward", {of.dy, all.queries, all.keys, all.values}, [&] {
      for_each_key_head(
          all.keys, [&] { return BackwardHeads(all, of); },
          [](BackwardHeads& here, auto... where) { here.compute(where...); });
      return of.dq;
    });
    return {of.dq, of.dk, of.dv, {}, {}, {}, {}};
  }
};

}  // namespace
}  // namespace tiles
#pragma GCC diagnostic pop

bool suits_tiled_attention(const AttentionInputs& inputs) {
  const at::Tensor &q = inputs.queries, &k = inputs.keys;
  const std::int64_t depth = q.size(3);
  return has_pair_products() && q.is_cpu() && q.scalar_type() == at::kBFloat16 &&
         depth % tiles::kTileDepth == 0 && inputs.values.size(3) == depth &&
         q.size(1) % k.size(1) == 0 && (!inputs.causal || q.size(2) == k.size(2)) &&
         std::min(q.size(2), k.size(2)) >= tiles::kSide &&
         k.size(0) * k.size(1) >= threads_of_a_loop();
}

at::Tensor tiled_attention(const AttentionInputs& inputs, double dropout_probability) {
  const at::Tensor& q = inputs.queries;
  std::optional<at::Tensor> mask;
  if (inputs.mask.defined())
    mask = inputs.mask.to(at::kFloat)
               .contiguous()
               .expand({q.size(0), q.size(1), q.size(2), inputs.keys.size(2)});
  return tiles::TiledAttention::apply(q, inputs.keys, inputs.values, mask, inputs.causal,
                                      dropout_probability > 0 ? draw_dropout_key() : 0,
                                      dropout_probability);
}
#else
bool suits_tiled_attention(const AttentionInputs&) { return false; }
at::Tensor tiled_attention(const AttentionInputs&, double) { return {}; }
#endif

}  // namespace scalemark
