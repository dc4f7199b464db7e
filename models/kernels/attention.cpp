// Computes attention and its gradient as matrix products, with the dropout of this folder or with
// the probabilities made again between them. Divides the result of one projection into the heads of
// queries, keys and values and rotates queries and keys, in one pass over memory in each direction.
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

/// A row of scores, which becomes probabilities, and what dropout leaves of them.
template <typename T>
struct ProbabilityRow {
  T *scores, *dropped;
  const float* factors;  ///< of dropout
  float* exponentials;   ///< room for those of the row
  std::int64_t count;
  float scale;  ///< of the scores
};
void to_probabilities(const ProbabilityRow<float>& row);
void to_probabilities(const ProbabilityRow<c10::BFloat16>& row);

/// A row of probabilities, what dropout leaves of them, and the gradient of that, which becomes the
/// gradient of the scores before the scale.
template <typename T>
struct ProbabilityGradient {
  const T* probabilities;
  T *dropped, *gradients;
  const float* factors;
  std::int64_t count;
  float scale;
};
void to_score_gradient(const ProbabilityGradient<float>& row);
void to_score_gradient(const ProbabilityGradient<c10::BFloat16>& row);

namespace {

/// The logarithm below which a probability is 0: exp_below_zero() has no smaller ones.
constexpr float kHidden = -87;

template <typename T>
SCALEMARK_INLINE void probabilities_of(const ProbabilityRow<T>& row) {
  T *const scores = row.scores, *const dropped = row.dropped;
  const float* const factors = row.factors;
  float* const exponentials = row.exponentials;
  const float scale = row.scale;
  const float highest = joined_in_lanes(
      row.count, -std::numeric_limits<float>::infinity(),
      [](float a, float b) { return a > b ? a : b; },
      [scores](std::int64_t i) { return load(scores[i]); });
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.count; ++i) {
    const float below = (load(scores[i]) - highest) * scale;
    const float exponential = exp_below_zero(below);
    exponentials[i] = below < kHidden ? 0.f : exponential;
  }
  const float sum = lane_sum(row.count, [exponentials](std::int64_t i) { return exponentials[i]; });
  const float inverse = 1 / sum;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.count; ++i) {
    store(scores[i], exponentials[i] * inverse);
    store(dropped[i], load(scores[i]) * factors[i]);  // as the backward pass makes it again
  }
}

template <typename T>
SCALEMARK_INLINE void score_gradient_of(const ProbabilityGradient<T>& row) {
  const T* const probabilities = row.probabilities;
  T *const dropped = row.dropped, *const gradients = row.gradients;
  const float* const factors = row.factors;
  const float scale = row.scale;
  const float sum = lane_sum(row.count, [=](std::int64_t i) {
    return load(probabilities[i]) * factors[i] * load(gradients[i]);
  });
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.count; ++i) {
    const float probability = load(probabilities[i]), factor = factors[i];
    store(dropped[i], probability * factor);
    store(gradients[i], probability * (load(gradients[i]) * factor - sum) * scale);
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP void to_probabilities(const ProbabilityRow<float>& row) {
  probabilities_of(row);
}
SCALEMARK_VECTOR_LOOP void to_probabilities(const ProbabilityRow<c10::BFloat16>& row) {
  probabilities_of(row);
}
SCALEMARK_VECTOR_LOOP void to_score_gradient(const ProbabilityGradient<float>& row) {
  score_gradient_of(row);
}
SCALEMARK_VECTOR_LOOP void to_score_gradient(const ProbabilityGradient<c10::BFloat16>& row) {
  score_gradient_of(row);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Calls row(i, factors of its elements, room for as many numbers) for each row i of x, [...,
/// length].
template <typename Row>
void for_each_row(const at::Tensor& x, const DropFactors& factors, const Row& row) {
  const std::int64_t length = x.size(-1);
  at::parallel_for(0, x.numel() / length, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> buffer, room(static_cast<std::size_t>(length));
    for (std::int64_t i = begin; i < end; ++i)
      row(i, factors.of(i * length, length, buffer), room.data());
  });
}

/// Turns scores into probabilities and returns what dropout leaves of them.
template <typename T>
at::Tensor dropped_probabilities(at::Tensor& scores, const DropFactors& factors, float scale) {
  at::Tensor left = at::empty_like(scores);
  const std::int64_t length = scores.size(-1);
  T *const score = scores.mutable_data_ptr<T>(), *const to = left.mutable_data_ptr<T>();
  for_each_row(scores, factors, [=](std::int64_t i, const float* of_row, float* room) {
    to_probabilities({score + i * length, to + i * length, of_row, room, length, scale});
  });
  return left;
}

/// Turns gradients of what dropout left of probabilities into those of scores, and returns what it
/// left.
template <typename T>
at::Tensor dropped_again(const at::Tensor& probabilities, at::Tensor& gradients,
                         const DropFactors& factors, float scale) {
  at::Tensor left = at::empty_like(probabilities);
  const std::int64_t length = probabilities.size(-1);
  const T* const probability = probabilities.const_data_ptr<T>();
  T *const gradient = gradients.mutable_data_ptr<T>(), *const to = left.mutable_data_ptr<T>();
  for_each_row(probabilities, factors, [=](std::int64_t i, const float* of_row, float*) {
    to_score_gradient(
        {probability + i * length, to + i * length, gradient + i * length, of_row, length, scale});
  });
  return left;
}

/// Of q, k and v [batch x heads, length, depth], with `hidden` added to the scaled scores.
class AttentionWithDropout : public torch::autograd::Function<AttentionWithDropout> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const std::optional<at::Tensor>& hidden,
                            std::int64_t key, double probability) {
    const at::Tensor keys = k.transpose(1, 2);
    at::Tensor weights = hidden ? at::baddbmm(*hidden, q, keys, 1, scale_of(q)) : at::bmm(q, keys);
    const float scale = hidden ? 1 : scale_of(q);
    const DropFactors factors(key, probability);
    const at::Tensor dropped = as_operator("scalemark::dropped_softmax", {weights}, [&] {
      return weights.scalar_type() == at::kFloat
                 ? dropped_probabilities<float>(weights, factors, scale)
                 : dropped_probabilities<c10::BFloat16>(weights, factors, scale);
    });
    context->save_for_backward({q, k, v, weights});
    context->saved_data["key"] = key;
    context->saved_data["probability"] = probability;
    return at::bmm(dropped, v);
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &weights = saved[3];
    const at::Tensor& dy = upstream[0];
    const DropFactors factors(context->saved_data["key"].toInt(),
                              context->saved_data["probability"].toDouble());
    at::Tensor gradient = at::bmm(dy, v.transpose(1, 2));
    const at::Tensor dropped =
        as_operator("scalemark::dropped_softmax_backward", {weights, gradient}, [&] {
          return weights.scalar_type() == at::kFloat
                     ? dropped_again<float>(weights, gradient, factors, scale_of(q))
                     : dropped_again<c10::BFloat16>(weights, gradient, factors, scale_of(q));
        });
    return {at::bmm(gradient, k),
            at::bmm(gradient.transpose(1, 2), q),
            at::bmm(dropped.transpose(1, 2), dy),
            {},
            {},
            {}};
  }

 private:
  static float scale_of(const at::Tensor& q) {
    return 1 / std::sqrt(static_cast<float>(q.size(2)));
  }
};

}  // namespace

bool suits_attention(const AttentionInputs& inputs, double dropout_probability) {
  return suits_loops(inputs.queries) && dropout_probability > 0 &&
         inputs.keys.size(1) == inputs.queries.size(1);
}

at::Tensor attention_with_dropout(const AttentionInputs& inputs, double dropout_probability) {
  const at::Tensor hidden = hidden_from(inputs);
  return AttentionWithDropout::apply(without_heads(inputs.queries), without_heads(inputs.keys),
                                     without_heads(inputs.values),
                                     hidden.defined() ? std::optional(hidden) : std::nullopt,
                                     draw_dropout_key(), dropout_probability)
      .view(inputs.queries.sizes());
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

constexpr std::size_t kParts = 3;  ///< queries, keys and values

/// How many heads of each part stand in a row of the projection.
struct HeadCounts {
  std::int64_t queries, keys, depth;
  std::int64_t all() const { return queries + 2 * keys; }
  std::int64_t of(std::size_t part) const { return part == 0 ? queries : keys; }
};

/// Where the heads of a part [batch, heads, length, depth] are: a head at a position is contiguous.
template <typename T>
struct HeadPlaces {
  T* data = nullptr;
  std::int64_t of_sample = 0, of_head = 0, of_position = 0;  ///< strides

  HeadPlaces() = default;
  HeadPlaces(T* begin, const at::Tensor& part)
      : data(begin),
        of_sample(part.stride(0)),
        of_head(part.stride(1)),
        of_position(part.stride(2)) {}
  T* at(std::int64_t sample, std::int64_t head, std::int64_t position) const {
    return data + sample * of_sample + head * of_head + position * of_position;
  }
};

/// Copies between the rows [batch, length, all heads, depth] of a projection and its parts.
template <typename T>
class HeadCopy {
 public:
  HeadCopy(const HeadCounts& counts, const Rotation& rotation) : counts_(counts) {
    if (!rotation.cosines.defined()) return;
    cosines_ = rotation.cosines.const_data_ptr<float>();
    sines_ = rotation.sines.const_data_ptr<float>();
  }

  void divide(const at::Tensor& whole, std::array<at::Tensor, kParts>& parts) const {
    const T* const from = whole.const_data_ptr<T>();
    std::array<HeadPlaces<T>, kParts> to{};
    for (std::size_t i = 0; i < kParts; ++i)
      to[i] = {parts[i].template mutable_data_ptr<T>(), parts[i]};
    for_each_head(whole, [&](std::int64_t place, std::size_t part, auto... where) {
      move(from + place, to[part].at(where...), part, 1.f, where...);
    });
  }

  void join(const std::array<at::Tensor, kParts>& parts, at::Tensor& whole) const {
    std::array<HeadPlaces<const T>, kParts> from{};
    for (std::size_t i = 0; i < kParts; ++i)
      from[i] = {parts[i].template const_data_ptr<T>(), parts[i]};
    T* const to = whole.mutable_data_ptr<T>();
    for_each_head(whole, [&](std::int64_t place, std::size_t part, auto... where) {
      move(from[part].at(where...), to + place, part, -1.f, where...);
    });
  }

 private:
  void move(const T* from, T* to, std::size_t part, float direction, std::int64_t, std::int64_t,
            std::int64_t position) const {
    if (part == 2 || !cosines_) {  // values are not rotated
      std::copy(from, from + counts_.depth, to);
      return;
    }
    const std::int64_t half = counts_.depth / 2;
    rotate_head({from, to, cosines_ + position * half, sines_ + position * half, half, direction});
  }

  /// Calls visit(place in the whole, part, sample, head of the part, position).
  template <typename Visit>
  void for_each_head(const at::Tensor& whole, const Visit& visit) const {
    const std::int64_t length = whole.size(1), row_size = counts_.all() * counts_.depth;
    at::parallel_for(0, whole.size(0) * length, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int64_t place = row * row_size;
        for (std::size_t part = 0; part < kParts; ++part)
          for (std::int64_t head = 0; head < counts_.of(part); ++head, place += counts_.depth)
            visit(place, part, row / length, head, row % length);
      }
    });
  }

  HeadCounts counts_;
  const float *cosines_ = nullptr, *sines_ = nullptr;
};

class DividedHeads : public torch::autograd::Function<DividedHeads> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               std::int64_t key_heads, const std::optional<at::Tensor>& cosines,
                               const std::optional<at::Tensor>& sines) {
    const at::Tensor whole = x.contiguous();
    const HeadCounts counts{x.size(2) - 2 * key_heads, key_heads, x.size(3)};
    Rotation rotation;
    if (cosines) rotation = {cosines->contiguous(), sines->contiguous()};
    context->save_for_backward({rotation.cosines, rotation.sines});
    std::array<at::Tensor, kParts> parts;
    for (std::size_t i = 0; i < kParts; ++i)
      parts[i] = at::empty({x.size(0), counts.of(i), x.size(1), counts.depth}, x.options());
    as_operator("scalemark::divided_heads", {whole}, [&] {
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
    std::array<at::Tensor, kParts> parts;
    for (std::size_t i = 0; i < kParts; ++i)
      parts[i] = gradients[i].stride(3) == 1 ? gradients[i] : gradients[i].contiguous();
    const HeadCounts counts{parts[0].size(1), parts[1].size(1), parts[0].size(3)};
    const at::Tensor dx = as_operator("scalemark::divided_heads_backward", {parts[0]}, [&] {
      at::Tensor whole = at::empty({parts[0].size(0), parts[0].size(2), counts.all(), counts.depth},
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

bool suits_divided_heads(const at::Tensor& x, const Rotation& rotation) {
  return suits_loops(x) &&
         (!rotation.cosines.defined() || rotation.cosines.scalar_type() == at::kFloat);
}

AttentionHeads divided_heads_fused(const at::Tensor& x, std::int64_t key_heads,
                                   const Rotation& rotation) {
  const bool rotates = rotation.cosines.defined();
  const auto parts =
      DividedHeads::apply(x, key_heads, rotates ? std::optional(rotation.cosines) : std::nullopt,
                          rotates ? std::optional(rotation.sines) : std::nullopt);
  return {parts[0], parts[1], parts[2]};
}

/// A row of scores, which becomes probabilities, and of their gradients, which becomes that of the
/// scores before the scale.
struct ScoreRow {
  c10::BFloat16 *scores, *gradients;
  std::int64_t visible, all;               ///< columns; those behind `visible` get zeros
  const c10::BFloat16 *y, *gradient_of_y;  ///< of the row's result, contiguous
  std::int64_t depth;
  float scale, log_sum;  ///< logarithm of the sum of the exponentials of scaled scores
};
void score_gradient(const ScoreRow& row);

SCALEMARK_VECTOR_LOOP void score_gradient(const ScoreRow& row) {
  c10::BFloat16 *const scores = row.scores, *const gradients = row.gradients;
  const c10::BFloat16 *const y = row.y, *const dy = row.gradient_of_y;
  float of_all = 0;
  for (std::int64_t i = 0; i < row.depth; ++i) of_all += load(y[i]) * load(dy[i]);
  const float scale = row.scale, log_sum = row.log_sum;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.visible; ++i) {
    const float probability = exp_below_zero(load(scores[i]) * scale - log_sum);
    store(gradients[i], probability * (load(gradients[i]) - of_all) * scale);
    store(scores[i], probability);
  }
  std::fill(scores + row.visible, scores + row.all, c10::BFloat16(0.f));
  std::fill(gradients + row.visible, gradients + row.all, c10::BFloat16(0.f));
}

namespace {

/// Turns scores and gradients of probabilities, [batch x key heads, heads of a key head x length,
/// length], into probabilities and gradients of scores. `y` and `dy` are [batch, heads, length,
/// depth], `log_sums` fp32 [batch, heads, length].
void to_score_gradients(at::Tensor& scores, at::Tensor& gradients, const at::Tensor& y,
                        const at::Tensor& dy, const at::Tensor& log_sums, bool causal) {
  const std::int64_t heads = y.size(1), length = y.size(2), depth = y.size(3);
  auto* const score = scores.mutable_data_ptr<c10::BFloat16>();
  auto* const gradient = gradients.mutable_data_ptr<c10::BFloat16>();
  const HeadPlaces<const c10::BFloat16> of_y(y.const_data_ptr<c10::BFloat16>(), y);
  const auto* const of_dy = dy.const_data_ptr<c10::BFloat16>();
  const float* const log_sum = log_sums.const_data_ptr<float>();
  const float scale = 1.f / std::sqrt(static_cast<float>(depth));
  at::parallel_for(0, y.size(0) * heads * length, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t position = row % length, head = row / length % heads;
      score_gradient({score + row * length, gradient + row * length, causal ? position + 1 : length,
                      length, of_y.at(row / length / heads, head, position), of_dy + row * depth,
                      depth, scale, log_sum[row]});
    }
  });
}

class AttentionByProducts : public torch::autograd::Function<AttentionByProducts> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& queries,
                            const at::Tensor& keys, const at::Tensor& values, bool causal) {
    const auto [y, log_sums] =
        at::_scaled_dot_product_flash_attention_for_cpu(queries, keys, values, 0, causal);
    context->save_for_backward({queries, keys, values, y, log_sums});
    context->saved_data["causal"] = causal;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &queries = saved[0], &keys = saved[1], &y = saved[3];
    const std::int64_t batch = queries.size(0), length = queries.size(2), depth = queries.size(3);
    // The queries that share keys are one matrix.
    const auto of_keys = [&](const at::Tensor& x) {
      return x.contiguous().view({batch * keys.size(1), -1, depth});
    };
    const at::Tensor q = of_keys(queries), k = of_keys(keys), v = of_keys(saved[2]);
    const at::Tensor dy = of_keys(upstream[0]);
    at::Tensor probabilities = at::bmm(q, k.transpose(1, 2));
    at::Tensor scores = at::bmm(dy, v.transpose(1, 2));
    as_operator("scalemark::score_gradients", {probabilities, scores}, [&] {
      to_score_gradients(probabilities, scores, y, dy, saved[4].contiguous(),
                         context->saved_data["causal"].toBool());
      return scores;
    });
    const auto gradient = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& like) {
      return at::bmm(a, b).view({batch, like.size(1), length, depth});
    };
    return {gradient(scores, k, queries),
            gradient(scores.transpose(1, 2), q, keys),
            gradient(probabilities.transpose(1, 2), dy, keys),
            {}};
  }
};

/// Scores that are kept for a moment, and as many gradients.
constexpr std::int64_t kMostScores = 64 << 20;

}  // namespace

bool suits_attention_by_products(const AttentionInputs& inputs, double dropout_probability) {
  const at::Tensor &q = inputs.queries, &k = inputs.keys;
  return q.is_cpu() && q.scalar_type() == at::kBFloat16 && at::GradMode::is_enabled() &&
         dropout_probability == 0 && !inputs.mask.defined() && q.size(2) == k.size(2) &&
         q.size(0) * q.size(1) * q.size(2) * k.size(2) <= kMostScores;
}

at::Tensor attention_by_products(const AttentionInputs& inputs) {
  return AttentionByProducts::apply(inputs.queries, inputs.keys, inputs.values, inputs.causal);
}

}  // namespace scalemark
