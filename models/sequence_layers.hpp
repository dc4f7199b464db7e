// Defines the layers of sequence models: embedding, layer normalisation, attention, encoder. As in
// layers.hpp: fp32 parameters, activations in the compute dtype, every layer passes the gate.
#pragma once

#include "models/layers.hpp"

namespace scalemark {

/// The properties that the layers of a network share.
struct StackShape {
  std::int64_t width;  ///< d_model
  std::int64_t inner;  ///< of the feed-forward network
  std::int64_t heads;
  Activation activation = Activation::relu;
  LinearInit init = LinearInit::xavier;  ///< of the projections, as in the Transformer's own code
  double norm_epsilon = 1e-5;
  std::int64_t key_heads = 0;  ///< of keys and values; 0: as many as of queries
  bool bias = true;            ///< of the projections
  double residual_gain = 1;    ///< multiplies the initial weights of layers that end a residual
};

/// A layer normalisation over the last dimension (Ba et al. 2016): gamma 1, beta 0.
class LayerNorm : public torch::nn::Module {
 public:
  LayerNorm(LayerGate gate, std::int64_t width, double epsilon = 1e-5);
  /// Normalises x + dropout(branch), or x alone where `branch` is undefined: [..., width] in the
  /// same shape and dtype.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& branch = {},
                     double dropout_probability = 0);

 private:
  LayerGate gate_;
  double epsilon_;
  at::Tensor weight_, bias_;
};

/// A root mean square normalisation over the last dimension (Zhang and Sennrich 2019): gain 1.
class RmsNorm : public torch::nn::Module {
 public:
  RmsNorm(LayerGate gate, std::int64_t width, double epsilon = 1e-5);
  /// Maps [..., width] to the same shape and dtype.
  at::Tensor forward(const at::Tensor& x);

 private:
  LayerGate gate_;
  double epsilon_;
  at::Tensor weight_;
};

/// A table of vectors, which may serve as output projection too (Press and Wolf 2017): weight
/// [rows, width] as given.
class Embedding : public torch::nn::Module, public Freezable {
 public:
  Embedding(LayerGate gate, at::Tensor weight);
  /// Maps int64 [...] to [..., width] in the compute dtype.
  at::Tensor forward(const at::Tensor& indices);
  /// Maps [..., width] to logits [..., rows] in the dtype of `x`. `bias` [rows] belongs to the
  /// caller, who passes the gate with it. By default there is none.
  at::Tensor project(const at::Tensor& x, const at::Tensor& bias = {});
  /// Freezes the projection. The table of vectors stays.
  void freeze(at::ScalarType dtype) override;
  void quantize() override;

 private:
  LayerGate gate_;
  at::Tensor weight_;
  std::shared_ptr<FrozenLinear> projection_;
};

/// Returns a mask of `dtype` [batch, 1, 1, sources] from bool [batch, sources]: minus infinity
/// where a source is padding, else 0. An undefined tensor gives an undefined mask.
at::Tensor padding_mask(const at::Tensor& padding, at::ScalarType dtype);

/// A multi-head attention of a sequence to itself (Vaswani et al. 2017, 3.2.2). One projection [(1
/// + 2 key_heads / heads) width, width] gives queries, keys and values.
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(const LayerGate& gate, const StackShape& shape, bool causal);
  /// Maps [batch, length, width] to the same shape. `mask` is that of AttentionInputs.
  at::Tensor forward(const at::Tensor& x, double dropout_probability, const at::Tensor& mask = {},
                     const Rotation& rotation = {});

 private:
  LayerGate gate_;
  StackShape shape_;
  bool causal_;
  std::shared_ptr<Linear> input_, output_;
};

/// A multi-head attention of a sequence to the encoding of another one. Keys and values are one
/// projection [2 width, width].
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(const LayerGate& gate, const StackShape& shape);
  /// Maps [batch, targets, width] and [batch, sources, width] to [batch, targets, width].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, double dropout_probability,
                     const at::Tensor& mask = {});

 private:
  LayerGate gate_;
  StackShape shape_;
  std::shared_ptr<Linear> query_, memory_, output_;
};

/// Computes outer(activation(inner(x))), with dropout on the activation of ReLU (the Transformer)
/// and none on others. Where the activation halves, inner is [2 inner, width].
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const LayerGate& gate, const StackShape& shape);
  /// Maps [..., width] to the same shape.
  at::Tensor forward(const at::Tensor& x, double dropout_probability);

 private:
  LayerGate gate_;
  Activation activation_;
  std::shared_ptr<Linear> inner_, outer_;
};

/// A self-attention and a feed-forward network, each followed by dropout, residual and
/// normalisation (post-norm; Vaswani et al. 2017, 3.1).
class EncoderLayer : public torch::nn::Module {
 public:
  EncoderLayer(const LayerGate& gate, const StackShape& shape);
  /// Maps [batch, length, width] to the same shape. `mask` is that of AttentionInputs.
  at::Tensor forward(const at::Tensor& x, double dropout_probability, const at::Tensor& mask = {});

 private:
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<LayerNorm> attention_norm_;
  std::shared_ptr<FeedForward> feed_forward_;
  std::shared_ptr<LayerNorm> feed_forward_norm_;
};

/// A self-attention and a feed-forward network, each after a normalisation of its input and
/// followed by dropout and residual (pre-norm; Radford et al. 2019). `Norm` is LayerNorm or
/// RmsNorm.
template <typename Norm>
class PreNormLayer : public torch::nn::Module {
 public:
  PreNormLayer(const LayerGate& gate, const StackShape& shape, bool causal);
  /// Maps [batch, length, width] to the same shape.
  at::Tensor forward(const at::Tensor& x, double dropout_probability,
                     const Rotation& rotation = {});

 private:
  LayerGate gate_;
  std::shared_ptr<Norm> attention_norm_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<Norm> feed_forward_norm_;
  std::shared_ptr<FeedForward> feed_forward_;
};

/// Returns PE[pos, 2i] = sin(pos / 10000^(2i / width)), PE[pos, 2i + 1] = cos of the same (Vaswani
/// et al. 2017, 3.5): fp64 [length, width].
at::Tensor sinusoidal_positions(std::int64_t length, std::int64_t width);

}  // namespace scalemark
