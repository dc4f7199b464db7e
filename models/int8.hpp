// Wraps LibTorch's int8 operators for frozen layers on the CPU. Convolutions pass quint8 tensors on
// to each other, which carry their scale; matrix products of weights take and return fp32.
#pragma once

#include <ATen/native/quantized/PackedParams.h>

#include <optional>

#include "models/layers.hpp"

namespace scalemark {

/// Returns true where this LibTorch has the operators on this CPU.
bool has_int8_operators();

/// Collects the range of a tensor while the network runs in fp32.
class ActivationRange {
 public:
  void add(const at::Tensor& x);
  double scale() const;
  std::int64_t zero_point() const;
  /// Converts to quint8 with this range.
  at::Tensor quantized(const at::Tensor& x) const;

 private:
  double lo_ = 0, hi_ = 0;  ///< 0 is always exact: padding is made of it
};

/// A convolution with symmetric weights per output channel and activations per tensor with fixed
/// ranges.
class Int8Conv {
 public:
  /// Takes `weight` [out, in, kernel, kernel] and `bias` [out] in fp32. `output` is the range of
  /// the result.
  Int8Conv(const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef stride,
           at::IntArrayRef padding, ActivationRange input, ActivationRange output);
  /// Maps [N, in, H, W], quint8 or fp32, to [N, out, H', W'], quint8.
  at::Tensor forward(const at::Tensor& x, Activation activation) const;
  /// Returns relu(convolution + residual). `residual` is quint8 and is overwritten.
  at::Tensor add_relu(const at::Tensor& x, const at::Tensor& residual) const;

 private:
  at::Tensor taken(const at::Tensor& x) const { return x.is_quantized() ? x : input_.quantized(x); }

  c10::intrusive_ptr<ConvPackedParamsBase<2>> packed_;
  ActivationRange input_, output_;
};

/// A matrix product with symmetric weights per output channel and activations per tensor with the
/// range of each input.
class Int8Linear {
 public:
  Int8Linear(const at::Tensor& weight, const std::optional<at::Tensor>& bias);
  /// Maps [..., in], quint8 or fp32, to [..., out], fp32.
  at::Tensor forward(const at::Tensor& x, Activation activation) const;

 private:
  c10::intrusive_ptr<LinearPackedParamsBase> packed_;
};

}  // namespace scalemark
