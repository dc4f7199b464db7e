// The layers of sequence models: embedding, layer normalisation, attention. As in layers.hpp:
// fp32 parameters, activations in the compute dtype, every layer passes the gate.
#pragma once

#include "models/layers.hpp"

namespace scalemark {

/// What every layer of a Transformer shares.
struct AttentionShape {
  std::int64_t width;  ///< d_model
  std::int64_t heads;
};

/// Layer normalisation over the last dimension (Ba et al. 2016): eps 1e-5, gamma 1, beta 0.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(Gate gate, std::int64_t width);
  /// [..., width] -> the same shape and dtype.
  at::Tensor forward(const at::Tensor& x);

 private:
  Gate gate_;
  at::Tensor weight_, bias_;
};

/// Token vectors, tied to the output projection (Press and Wolf 2017): weight [vocabulary, width],
/// normal with standard deviation width^-0.5.
class TiedEmbedding : public torch::nn::Module, public Freezable {
 public:
  TiedEmbedding(Gate gate, std::int64_t vocabulary, std::int64_t width);
  /// int64 [...] -> [..., width] in the compute dtype, times sqrt(width) (Vaswani et al. 2017,
  /// 3.4).
  at::Tensor forward(const at::Tensor& tokens);
  /// [..., width] -> logits [..., vocabulary] in the dtype of `x`.
  at::Tensor project(const at::Tensor& x);
  /// Of the projection; the table of token vectors stays.
  void freeze(at::ScalarType dtype) override;

 private:
  Gate gate_;
  at::Tensor weight_;
  std::shared_ptr<FrozenLinear> projection_;
};

/// softmax(q k^T / sqrt(depth)) v per head, with dropout on the weights.
/// q [batch, heads, targets, depth], k and v [batch, heads, sources, depth] -> as q.
/// `causal`: target i sees sources up to i.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                     double dropout_probability);

/// Multi-head attention of a sequence to itself (Vaswani et al. 2017, 3.2.2). One projection
/// [3 width, width] gives queries, keys and values.
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(const Gate& gate, const AttentionShape& shape, bool causal);
  /// [batch, length, width] -> the same.
  at::Tensor forward(const at::Tensor& x, double dropout_probability);

 private:
  AttentionShape shape_;
  bool causal_;
  std::shared_ptr<Linear> input_, output_;
};

/// Multi-head attention of a sequence to another one's encoding; keys and values are one projection
/// [2 width, width].
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(const Gate& gate, const AttentionShape& shape);
  /// [batch, targets, width], [batch, sources, width] -> [batch, targets, width].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, double dropout_probability);

 private:
  AttentionShape shape_;
  std::shared_ptr<Linear> query_, memory_, output_;
};

/// PE[pos, 2i] = sin(pos / 10000^(2i / width)), PE[pos, 2i + 1] = cos of the same (Vaswani et al.
/// 2017, 3.5): fp64 [length, width].
at::Tensor sinusoidal_positions(std::int64_t length, std::int64_t width);

}  // namespace scalemark
