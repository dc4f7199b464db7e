// The layers of sequence models: embedding, layer normalisation, attention, encoder. As in
// layers.hpp: fp32 parameters, activations in the compute dtype, every layer passes the gate.
#pragma once

#include "models/layers.hpp"

namespace scalemark {

/// What the layers of a network share.
struct StackShape {
  std::int64_t width;  ///< d_model
  std::int64_t inner;  ///< of the feed-forward network
  std::int64_t heads;
  Activation activation = Activation::relu;
  LinearInit init = LinearInit::xavier;  ///< of the projections, as in the Transformer's own code
  double norm_epsilon = 1e-5;
};

/// Layer normalisation over the last dimension (Ba et al. 2016): gamma 1, beta 0.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(LayerGate gate, std::int64_t width, double epsilon = 1e-5);
  /// [..., width] -> the same shape and dtype.
  at::Tensor forward(const at::Tensor& x);

 private:
  LayerGate gate_;
  double epsilon_;
  at::Tensor weight_, bias_;
};

/// A table of vectors, which may serve as output projection too (Press and Wolf 2017): weight
/// [rows, width] as given.
class Embedding : public torch::nn::Module, public Freezable {
 public:
  Embedding(LayerGate gate, at::Tensor weight);
  /// int64 [...] -> [..., width] in the compute dtype.
  at::Tensor forward(const at::Tensor& indices);
  /// [..., width] -> logits [..., rows] in the dtype of `x`. `bias` [rows] is the caller's, who
  /// passes the gate with it; none by default.
  at::Tensor project(const at::Tensor& x, const at::Tensor& bias = {});
  /// Of the projection; the table of vectors stays.
  void freeze(at::ScalarType dtype) override;
  void quantize() override;

 private:
  LayerGate gate_;
  at::Tensor weight_;
  std::shared_ptr<FrozenLinear> projection_;
};

/// Of bool [batch, sources], true where a source is padding: 0, there minus infinity, of `dtype`
/// [batch, 1, 1, sources]. Undefined from undefined.
at::Tensor padding_mask(const at::Tensor& padding, at::ScalarType dtype);

/// Multi-head attention of a sequence to itself (Vaswani et al. 2017, 3.2.2). One projection
/// [3 width, width] gives queries, keys and values.
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(const LayerGate& gate, const StackShape& shape, bool causal);
  /// [batch, length, width] -> the same. `mask`: of AttentionInputs.
  at::Tensor forward(const at::Tensor& x, double dropout_probability, const at::Tensor& mask = {});

 private:
  LayerGate gate_;
  StackShape shape_;
  bool causal_;
  std::shared_ptr<Linear> input_, output_;
};

/// Multi-head attention of a sequence to another one's encoding; keys and values are one projection
/// [2 width, width].
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(const LayerGate& gate, const StackShape& shape);
  /// [batch, targets, width], [batch, sources, width] -> [batch, targets, width].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, double dropout_probability,
                     const at::Tensor& mask = {});

 private:
  LayerGate gate_;
  StackShape shape_;
  std::shared_ptr<Linear> query_, memory_, output_;
};

/// outer(activation(inner(x))), with dropout on the activation of ReLU (the Transformer) and none
/// on that of GELU (BERT), which is the exact one: x Phi(x).
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const LayerGate& gate, const StackShape& shape);
  /// [..., width] -> the same.
  at::Tensor forward(const at::Tensor& x, double dropout_probability);

 private:
  LayerGate gate_;
  Activation activation_;
  std::shared_ptr<Linear> inner_, outer_;
};

/// Self-attention and feed-forward network, each followed by dropout, residual and normalisation
/// (post-norm; Vaswani et al. 2017, 3.1).
class EncoderLayer : public torch::nn::Module {
 public:
  EncoderLayer(const LayerGate& gate, const StackShape& shape);
  /// [batch, length, width] -> the same. `mask`: of AttentionInputs.
  at::Tensor forward(const at::Tensor& x, double dropout_probability, const at::Tensor& mask = {});

 private:
  LayerGate gate_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<LayerNorm> attention_norm_;
  std::shared_ptr<FeedForward> feed_forward_;
  std::shared_ptr<LayerNorm> feed_forward_norm_;
};

/// PE[pos, 2i] = sin(pos / 10000^(2i / width)), PE[pos, 2i + 1] = cos of the same (Vaswani et al.
/// 2017, 3.5): fp64 [length, width].
at::Tensor sinusoidal_positions(std::int64_t length, std::int64_t width);

}  // namespace scalemark
