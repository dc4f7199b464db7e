// int8 operators of LibTorch for frozen layers on the CPU. Convolutions hand quint8 tensors on to
// each other, which carry their scale; matrix products of weights take and give fp32.
#pragma once

#include <ATen/native/quantized/PackedParams.h>

#include <optional>

#include "models/layers.hpp"

namespace scalemark {

/// True where this LibTorch has the operators on this CPU.
bool has_int8_operators();

/// The values that a tensor took while the network ran in fp32.
class ActivationRange {
 public:
  void add(const at::Tensor& x);
  double scale() const;
  std::int64_t zero_point() const;
  /// To quint8 with this range.
  at::Tensor quantized(const at::Tensor& x) const;

 private:
  double lo_ = 0, hi_ = 0;  ///< 0 is always exact: padding is made of it
};

/// Weights symmetric and per output channel, activations per tensor with fixed ranges.
class Int8Conv {
 public:
  /// `weight` [out, in, kernel, kernel] and `bias` [out] in fp32; `output`: of what it writes.
  Int8Conv(const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef stride,
           at::IntArrayRef padding, ActivationRange input, ActivationRange output);
  /// [N, in, H, W], quint8 or fp32 -> [N, out, H', W'], quint8.
  at::Tensor forward(const at::Tensor& x, Activation activation) const;
  /// relu(convolution + residual); `residual` quint8, written over.
  at::Tensor add_relu(const at::Tensor& x, const at::Tensor& residual) const;

 private:
  at::Tensor taken(const at::Tensor& x) const { return x.is_quantized() ? x : input_.quantized(x); }

  c10::intrusive_ptr<ConvPackedParamsBase<2>> packed_;
  ActivationRange input_, output_;
};

/// Weights likewise, activations per tensor with the range of each input.
class Int8Linear {
 public:
  Int8Linear(const at::Tensor& weight, const std::optional<at::Tensor>& bias);
  /// [..., in], quint8 or fp32 -> [..., out], fp32.
  at::Tensor forward(const at::Tensor& x, Activation activation) const;

 private:
  c10::intrusive_ptr<LinearPackedParamsBase> packed_;
};

}  // namespace scalemark
