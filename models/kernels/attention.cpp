// Computes attention as matrix products with the dropout of this folder between them. Divides the
// result of one projection into the heads of queries, keys and values and rotates queries and keys,
// in one pass over memory in each direction.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <limits>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

/// Returns 0 where a target may look, and minus infinity where it may not: [length, length].
at::Tensor causal_mask(std::int64_t length, const at::TensorOptions& options) {
  return at::full({length, length}, -std::numeric_limits<double>::infinity(), options).triu_(1);
}

at::Tensor without_heads(const at::Tensor& x) { return x.flatten(0, 1); }

/// Returns minus infinity where a target may not look. The result is undefined where it may look
/// anywhere.
at::Tensor hidden_from(const AttentionInputs& inputs) {
  const at::Tensor& queries = inputs.queries;
  if (inputs.mask.defined())
    return without_heads(inputs.mask.expand({-1, queries.size(1), -1, -1}));
  return inputs.causal ? causal_mask(queries.size(2), queries.options()) : at::Tensor();
}

}  // namespace

bool suits_attention(const AttentionInputs& inputs, double dropout_probability) {
  return inputs.queries.is_cpu() && dropout_probability > 0;
}

at::Tensor attention_with_dropout(const AttentionInputs& inputs, double dropout_probability) {
  const at::Tensor &queries = inputs.queries, q = without_heads(queries);
  const at::Tensor keys = without_heads(inputs.keys).transpose(1, 2);
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(3)));
  const at::Tensor hidden = hidden_from(inputs);
  const at::Tensor scores =
      hidden.defined() ? at::baddbmm(hidden, q, keys, 1, scale) : at::bmm(q, keys).mul_(scale);
  const at::Tensor weights = dropout(at::softmax(scores, -1), dropout_probability);
  return at::bmm(weights, without_heads(inputs.values)).view(queries.sizes());
}

/// A head at a position: `half` pairs (x[i], x[i + half]), of which pair i is rotated by an angle
/// with that cosine and sine.
template <typename T>
struct RotatedHead {
  const T* x;
  T* y;
  const float *cosines, *sines;
  std::int64_t half;
  float direction;  ///< 1, or -1 for the gradient
};
void rotate_head(const RotatedHead<float>& head);
void rotate_head(const RotatedHead<c10::BFloat16>& head);

namespace {

template <typename T>
SCALEMARK_INLINE void rotated(const RotatedHead<T>& head) {
  const auto [x, y, cosines, sines, half, direction] = head;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = load(x[i]), b = load(x[i + half]), sine = direction * sines[i];
    store(y[i], a * cosines[i] - b * sine);
    store(y[i + half], b * cosines[i] + a * sine);
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void rotate_head(const RotatedHead<float>& head) { rotated(head); }
SCALEMARK_VECTOR_LOOP void rotate_head(const RotatedHead<c10::BFloat16>& head) { rotated(head); }

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// How many heads of each part stand in a row of the projection.
struct HeadCounts {
  std::int64_t queries, keys, depth;
  std::int64_t all() const { return queries + 2 * keys; }
};

/// Copies between the rows [positions, all heads, depth] of a projection and its parts [positions,
/// heads of the part, depth].
template <typename T>
class HeadCopy {
 public:
  HeadCopy(const HeadCounts& counts, const Rotation& rotation)
      : counts_(counts),
        cosines_(rotation.cosines.const_data_ptr<float>()),
        sines_(rotation.sines.const_data_ptr<float>()),
        length_(rotation.cosines.size(0)) {}

  void divide(const at::Tensor& whole, std::array<at::Tensor, 3>& parts) const {
    const T* const from = whole.const_data_ptr<T>();
    std::array<T*, 3> to{};
    for (std::size_t i = 0; i < 3; ++i) to[i] = parts[i].template mutable_data_ptr<T>();
    for_each_head(whole.numel(), [&](std::int64_t whole_at, std::size_t part, std::int64_t part_at,
                                     std::int64_t position) {
      move(from + whole_at, to[part] + part_at, part, position, 1.f);
    });
  }

  void join(const std::array<at::Tensor, 3>& parts, at::Tensor& whole) const {
    std::array<const T*, 3> from{};
    for (std::size_t i = 0; i < 3; ++i) from[i] = parts[i].template const_data_ptr<T>();
    T* const to = whole.mutable_data_ptr<T>();
    for_each_head(whole.numel(), [&](std::int64_t whole_at, std::size_t part, std::int64_t part_at,
                                     std::int64_t position) {
      move(from[part] + part_at, to + whole_at, part, position, -1.f);
    });
  }

 private:
  void move(const T* from, T* to, std::size_t part, std::int64_t position, float direction) const {
    if (part == 2) {  // values are not rotated
      std::copy(from, from + counts_.depth, to);
      return;
    }
    const std::int64_t half = counts_.depth / 2;
    rotate_head({from, to, cosines_ + position * half, sines_ + position * half, half, direction});
  }

  /// Calls visit(place in the whole, part, place in the part, position in the sequence).
  template <typename Visit>
  void for_each_head(std::int64_t elements, const Visit& visit) const {
    const std::array<std::int64_t, 3> heads{counts_.queries, counts_.keys, counts_.keys};
    const std::int64_t row_size = counts_.all() * counts_.depth;
    at::parallel_for(0, elements / row_size, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int64_t whole_at = row * row_size;
        for (std::size_t part = 0; part < 3; ++part)
          for (std::int64_t head = 0; head < heads[part]; ++head, whole_at += counts_.depth)
            visit(whole_at, part, (row * heads[part] + head) * counts_.depth, row % length_);
      }
    });
  }

  HeadCounts counts_;
  const float *cosines_, *sines_;
  std::int64_t length_;
};

class RotatedHeads : public torch::autograd::Function<RotatedHeads> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               std::int64_t key_heads, const at::Tensor& cosines,
                               const at::Tensor& sines) {
    const at::Tensor whole = x.contiguous();
    const HeadCounts counts{x.size(2) - 2 * key_heads, key_heads, x.size(3)};
    const Rotation rotation{cosines.contiguous(), sines.contiguous()};
    context->save_for_backward({rotation.cosines, rotation.sines});
    std::array<at::Tensor, 3> parts;
    const std::array<std::int64_t, 3> heads{counts.queries, counts.keys, counts.keys};
    for (std::size_t i = 0; i < 3; ++i)
      parts[i] = at::empty({x.size(0), x.size(1), heads[i], counts.depth}, x.options());
    as_operator("scalemark::rotated_heads", {whole}, [&] {
      x.scalar_type() == at::kFloat
          ? HeadCopy<float>(counts, rotation).divide(whole, parts)
          : HeadCopy<c10::BFloat16>(counts, rotation).divide(whole, parts);
      return parts[0];
    });
    return {parts[0], parts[1], parts[2]};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Rotation rotation{saved[0], saved[1]};
    std::array<at::Tensor, 3> parts;
    for (std::size_t i = 0; i < 3; ++i) parts[i] = gradients[i].contiguous();
    const HeadCounts counts{parts[0].size(2), parts[1].size(2), parts[0].size(3)};
    const at::Tensor dx = as_operator("scalemark::rotated_heads_backward", {parts[0]}, [&] {
      at::Tensor whole = at::empty({parts[0].size(0), parts[0].size(1), counts.all(), counts.depth},
                                   parts[0].options());
      whole.scalar_type() == at::kFloat
          ? HeadCopy<float>(counts, rotation).join(parts, whole)
          : HeadCopy<c10::BFloat16>(counts, rotation).join(parts, whole);
      return whole;
    });
    return {dx, {}, {}, {}};
  }
};

}  // namespace

bool suits_rotated_heads(const at::Tensor& x, const Rotation& rotation) {
  return suits_loops(x) && rotation.cosines.scalar_type() == at::kFloat;
}

AttentionHeads rotated_heads_fused(const at::Tensor& x, std::int64_t key_heads,
                                   const Rotation& rotation) {
  const auto parts = RotatedHeads::apply(x, key_heads, rotation.cosines, rotation.sines);
  return {parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2)};
}

}  // namespace scalemark
