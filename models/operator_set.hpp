// The operators that a network and its training are computed with (--kernels): LibTorch's own, or
// those of models/kernels/ where these suit. Layers, optimizers and gradients call them through
// this interface alone, so that the choice is made in one place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "models/parameter_gate.hpp"

namespace scalemark {

/// What a layer applies to its result; a frozen layer applies it while it writes. `gelu` is the
/// exact x Phi(x), `gelu_tanh` its approximation x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
/// (Hendrycks and Gimpel 2016). `swiglu` maps [..., 2 n] to [..., n]: the first half g and the
/// second u become g sigmoid(g) u (Shazeer 2020).
enum class Activation { none, relu, gelu, gelu_tanh, swiglu };

/// Returns whether a layer of that width has twice as many outputs, of which the activation makes
/// one half.
constexpr bool halves(Activation activation) { return activation == Activation::swiglu; }

/// Applies the activation. It overwrites `x` where the activation allows that.
at::Tensor activated(at::Tensor x, Activation activation);

/// Applies the activation, but never overwrites `x`, which an autograd function may have kept.
at::Tensor activated_anew(const at::Tensor& x, Activation activation);

/// The windows whose maxima are taken: squares of `size` pixels.
struct PoolWindow {
  std::int64_t size, stride, padding;
};

/// What a layer of batch normalisation owns: all fp32 [channels].
struct BatchNormTensors {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_variance;  ///< written while training
};

/// Says how batch normalisation is computed.
struct BatchNormRule {
  double momentum, epsilon;
  bool training;  ///< with the batch's statistics, not the running ones
};

/// The inputs of attention: queries [batch, heads, targets, depth], keys and values [batch, key
/// heads, sources, depth]. Where there are fewer key heads, each serves as many heads of queries
/// (Ainslie et al. 2023).
struct AttentionInputs {
  at::Tensor queries, keys, values;
  bool causal;           ///< target i sees sources up to i
  at::Tensor mask = {};  ///< of padding_mask(), not with causal; undefined: none
};

/// Queries, keys and values by heads: each [batch, heads, length, depth].
struct AttentionHeads {
  at::Tensor queries, keys, values;
};

/// The rotary positions of a sequence (Su et al. 2021): cosines and sines of the angles, fp32 at
/// least, [length, depth / 2]. Undefined: none.
struct Rotation {
  at::Tensor cosines, sines;
};

/// What Adam moves, all of one length; `shadow`: undefined, or the weights in bf16.
struct AdamTensors {
  at::Tensor weights, gradients, mean, square, shadow;
};

/// The factors of one step: mean += of_mean (g - mean), square += of_square (g^2 - square), with g
/// = gradient + decay weight; weight = shrink weight - rate mean / (sqrt(square) / correction +
/// epsilon).
struct AdamRates {
  float of_mean, of_square, decay, shrink, rate, correction, epsilon;
};

/// A step of Adam that writes the shadow too, on the CPU.
using AdamStep = void (*)(const AdamTensors&, const AdamRates&);

/// A convolution whose weight no longer changes, in the order in which its kernel reads it.
class FixedConvolution {
 public:
  virtual ~FixedConvolution() = default;
  /// The convolution + bias [out], max(., 0) with `relu`. `residual` (undefined: none), like the
  /// result, is added before and written over.
  virtual at::Tensor operator()(const at::Tensor& x, const at::Tensor& bias, bool relu,
                                const at::Tensor& residual = {}) const = 0;
};

/// LibTorch's own operators. The set of models/kernels/ is derived from this class.
class OperatorSet {
 public:
  virtual ~OperatorSet() = default;

  /// Maps [N, in, H, W] to activation(convolution + bias), [N, out, H', W']. An undefined `bias` is
  /// none.
  virtual at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            at::IntArrayRef stride, at::IntArrayRef padding,
                            Activation activation) const;
  /// Returns activation(normalised x + residual) (Ioffe and Szegedy 2015), in the shape and dtype
  /// of x. `residual` is like x; where it is undefined, none is added.
  virtual at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& layer,
                                const BatchNormRule& rule, Activation activation,
                                const at::Tensor& residual) const;
  /// Returns the layer normalisation of x + dropout(branch) over the last dimension (Ba et al.
  /// 2016), in the shape and dtype of x. An undefined `branch` is none. `weight` and `bias` are
  /// fp32 [width].
  virtual at::Tensor norm_of_sum(const at::Tensor& x, const at::Tensor& branch,
                                 double dropout_probability, const at::Tensor& weight,
                                 const at::Tensor& bias, double epsilon) const;
  virtual at::Tensor max_pool(const at::Tensor& x, const PoolWindow& window) const;
  /// Returns x / sqrt(mean(x^2) + epsilon) weight over the last dimension (Zhang and Sennrich
  /// 2019), in the shape and dtype of x. `weight` is fp32 [width].
  virtual at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) const;
  /// Divides x [batch, length, heads + 2 key_heads, depth] into heads. With a rotation queries and
  /// keys are rotated: of a depth's first half a and second half b become a cos - b sin and b cos +
  /// a sin.
  virtual AttentionHeads divided_heads(const at::Tensor& x, std::int64_t key_heads,
                                       const Rotation& rotation = {}) const;

  /// Returns softmax(q k^T / sqrt(depth)) v for each head, with dropout on the weights, in the
  /// shape of the queries.
  virtual at::Tensor attention(const AttentionInputs& inputs, double dropout_probability) const;
  /// Returns x with every element zeroed with `probability` and the others scaled by 1 / (1 -
  /// probability) (Srivastava et al. 2014).
  virtual at::Tensor dropout(const at::Tensor& x, double probability) const;
  /// Returns dropout(relu(x)).
  virtual at::Tensor relu_dropout(const at::Tensor& x, double probability) const;
  /// Maps x [..., in], leaf [out, in] fp32, bias [out] in the dtype of x or undefined -> [..., out]
  /// in the dtype of x, computed with the gate's compute weight. It is the product of activation(x)
  /// in place of x.
  virtual at::Tensor linear(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                            const LayerGate& gate, Activation activation = Activation::none) const;
  /// Returns the sum over the rows of the cross entropy of `logits` [rows, classes], in fp32 at
  /// least, and labels int64 [rows]; rows of `ignored` count nothing.
  virtual at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                   std::int64_t ignored, double label_smoothing) const;

  /// Returns f(x), where f treats each sample of x [N, ...] by itself.
  virtual at::Tensor in_shares(const at::Tensor& x,
                               const std::function<at::Tensor(const at::Tensor&)>& f) const;
  /// Returns null where the set has no kernel of its own for this convolution.
  virtual std::unique_ptr<FixedConvolution> fixed_convolution(const at::Tensor& x,
                                                              const at::Tensor& weight,
                                                              at::IntArrayRef stride,
                                                              at::IntArrayRef padding) const;

  /// Returns whether layers on the CPU write the gradients of their weights into the place where
  /// these are wanted. If not, autograd makes a tensor of them, which is copied there.
  virtual bool places_gradients() const;
  /// Returns null where the set has no step of its own.
  virtual AdamStep adam_step() const;
  /// Returns the 2-norm of fp32 [n]: an fp64 scalar on its device, with squares summed in fp64.
  virtual at::Tensor norm(const at::Tensor& flat) const;
  /// Adds gradient[indices[i]] += rows[i], i ascending. gradient is fp32 [V, width], indices int64
  /// [n], rows fp32 [n, width], all contiguous.
  virtual void add_rows(at::Tensor gradient, const at::Tensor& indices,
                        const at::Tensor& rows) const;
};

const OperatorSet& torch_operators();

/// Returns the set of models/kernels/, or null in a build without them (SCALEMARK_KERNELS=OFF).
const OperatorSet* own_operators();

/// Returns scalemark's own operators where this build has them, else LibTorch's.
const OperatorSet& standard_operators();

}  // namespace scalemark
