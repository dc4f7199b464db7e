// Layers whose weights no longer change: biases and ReLU, and the residual's addition, are done by
// oneDNN while it writes a result, and weights are packed once in the order in which its kernels
// read them. What batch normalisation does is already in weight and bias (layers.cpp).
#pragma once

#include <torch/torch.h>

#include <optional>
#include <vector>

#include "models/layers.hpp"

namespace scalemark {

/// True where this LibTorch has oneDNN's fused operators and this CPU computes `dtype` with them.
bool has_fused_operators(at::ScalarType dtype);

/// A convolution for inference. Where the fused operators are not to be had (CUDA, float64), ReLU
/// and addition are operators of their own.
class FrozenConv {
 public:
  /// `weight` [out, in, kernel, kernel] in its memory format, `bias` [out]; cast to `dtype`.
  FrozenConv(const at::Tensor& weight, const at::Tensor& bias, const ConvOptions& options,
             at::ScalarType dtype);
  /// [N, in, H, W] -> [N, out, H', W'].
  at::Tensor forward(const at::Tensor& x, Activation activation);
  /// relu(convolution + residual), written over `residual` [N, out, H', W'].
  at::Tensor add_relu(const at::Tensor& x, at::Tensor residual);

 private:
  at::Tensor plain(const at::Tensor& x) const;
  const at::Tensor& packed_for(const at::Tensor& x);

  at::Tensor weight_, bias_;
  std::vector<std::int64_t> stride_, padding_;
  bool fused_;           ///< computed by oneDNN's fused operators
  bool packed_ = false;  ///< weight_ is in oneDNN's own layout
};

/// A matrix product for inference, likewise.
class FrozenLinear {
 public:
  /// `weight` [out, in], `bias` [out] or undefined; cast to `dtype`.
  FrozenLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType dtype);
  /// [..., in] -> [..., out].
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none);

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
  bool fused_;
  bool packed_ = false;
};

/// Makes a model ready for inference, for good: eval mode, no gradients, parameters in `dtype` (a
/// norm's stay as they are). `fused`: layers take their frozen form.
void freeze(Model& model, at::ScalarType dtype, bool fused);

}  // namespace scalemark
