// Layers whose weights no longer change: biases and ReLU, and the residual's addition, are done by
// oneDNN, and on a GPU after convolutions by cuDNN, while it writes a result; on the CPU weights
// are packed once in the order in which oneDNN's kernels read them. What batch normalisation does
// is already in weight and bias (layers.cpp).
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "models/int8.hpp"
#include "models/layers.hpp"

namespace scalemark {

/// True where this LibTorch has oneDNN's fused operators and this CPU computes `dtype` with them.
bool has_fused_operators(at::ScalarType dtype);

/// A convolution for inference. Where fused operators are not to be had (float64 on the CPU, CUDA
/// without cuDNN), ReLU and addition are operators of their own.
class FrozenConv {
 public:
  /// `weight` [out, in, kernel, kernel] in its memory format, `bias` [out]; cast to `dtype`.
  /// kQInt8: fp32 that notes its ranges, until quantize().
  FrozenConv(const OperatorSet& operators, const at::Tensor& weight, const at::Tensor& bias,
             const ConvOptions& options, at::ScalarType dtype);
  /// [N, in, H, W] -> [N, out, H', W'].
  at::Tensor forward(const at::Tensor& x, Activation activation);
  /// relu(convolution + residual), which may be written over `residual` [N, out, H', W'].
  at::Tensor add_relu(const at::Tensor& x, at::Tensor residual);
  /// From here on in int8, with the ranges so far.
  void quantize();
  bool is_quantized() const { return int8_ != nullptr; }

 private:
  at::Tensor convolve(const at::Tensor& x, Activation activation);
  at::Tensor convolve_add_relu(const at::Tensor& x, at::Tensor residual);
  at::Tensor noted(const at::Tensor& x, at::Tensor y);
  at::Tensor plain(const at::Tensor& x) const;
  const at::Tensor& packed_for(const at::Tensor& x);
  /// Null where no kernel of the operators suits what this layer was first used with.
  const FixedConvolution* fixed_for(const at::Tensor& x);

  const OperatorSet& operators_;
  at::Tensor weight_, bias_;
  std::unique_ptr<FixedConvolution> fixed_;  ///< in the place of weight_
  std::vector<std::int64_t> stride_, padding_;
  bool fused_;           ///< computed by oneDNN's fused operators
  bool of_cudnn_;        ///< ReLU and addition by cuDNN's
  bool packed_ = false;  ///< weight_ is in oneDNN's own layout
  bool notes_ranges_;    ///< of what it reads and writes
  at::Tensor exact_;     ///< while it does: the weight as given
  ActivationRange input_, output_;
  std::unique_ptr<Int8Conv> int8_;
};

/// A matrix product for inference, likewise.
class FrozenLinear {
 public:
  /// `weight` [out, in], `bias` [out] or undefined; cast to `dtype`. kQInt8: fp32 until quantize().
  FrozenLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType dtype);
  /// [..., in] -> [..., out].
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none);
  void quantize();

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
  bool fused_;
  bool packed_ = false;
  std::unique_ptr<Int8Linear> int8_;
};

/// Makes a model ready for inference, for good: eval mode, no gradients, parameters in `dtype` (a
/// norm's stay as they are). `fused`: layers take their frozen form. kQInt8: fp32, for quantize().
void freeze(Model& model, at::ScalarType dtype, bool fused);

/// What quantize() made of a network.
struct Quantization {
  std::int64_t layers = 0;    ///< in int8
  double relative_error = 0;  ///< largest difference of logits to fp32, of the largest logit
};

/// Of a model frozen as kQInt8: runs `batch` in fp32, whose values set the ranges of convolutions,
/// turns its layers to int8 for good, and runs it again. Weights that are no Freezable layer's stay
/// fp32.
Quantization quantize(Model& model, const Batch& batch);

}  // namespace scalemark
