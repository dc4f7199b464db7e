// Defines layers whose weights no longer change. Bias, ReLU and the addition of the residual are
// applied by oneDNN, and on a GPU after convolutions by cuDNN, while a result is written. On the
// CPU, weights are packed once in the order in which oneDNN's kernels read them. Batch
// normalisation is already folded into weight and bias (layers.cpp).
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "models/int8.hpp"
#include "models/layers.hpp"

namespace scalemark {

/// Returns true where this LibTorch has oneDNN's fused operators and this CPU computes `dtype` with
/// them.
bool has_fused_operators(at::ScalarType dtype);

/// A convolution for inference. Where there are no fused operators (float64 on the CPU, CUDA
/// without cuDNN), ReLU and addition are separate operators.
class FrozenConv {
 public:
  /// Casts `weight` [out, in, kernel, kernel], in its memory format, and `bias` [out] to `dtype`.
  /// With kQInt8 the layer computes in fp32 and records its ranges until quantize().
  FrozenConv(const OperatorSet& operators, const at::Tensor& weight, const at::Tensor& bias,
             const ConvOptions& options, at::ScalarType dtype);
  /// Maps [N, in, H, W] to [N, out, H', W'].
  at::Tensor forward(const at::Tensor& x, Activation activation);
  /// Returns relu(convolution + residual), which may overwrite `residual` [N, out, H', W'].
  at::Tensor add_relu(const at::Tensor& x, at::Tensor residual);
  /// Makes the layer compute in int8 from now on, with the ranges recorded so far.
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
  bool notes_ranges_;    ///< records the ranges of its inputs and outputs
  at::Tensor exact_;     ///< while it does: the weight as given
  ActivationRange input_, output_;
  std::unique_ptr<Int8Conv> int8_;
};

/// A matrix product for inference, with fused operators where there are any.
class FrozenLinear {
 public:
  /// Casts `weight` [out, in] and `bias` [out], which may be undefined, to `dtype`. With kQInt8 the
  /// layer computes in fp32 until quantize().
  FrozenLinear(const at::Tensor& weight, const at::Tensor& bias, at::ScalarType dtype);
  /// Maps [..., in] to [..., out].
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none);
  void quantize();

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
  bool fused_;
  bool packed_ = false;
  std::unique_ptr<Int8Linear> int8_;
};

/// Makes a model ready for inference, irreversibly: eval mode, no gradients, parameters in `dtype`
/// (those of a norm are unchanged). With `fused`, layers take their frozen form. kQInt8 gives fp32,
/// for quantize().
void freeze(Model& model, at::ScalarType dtype, bool fused);

/// The result of quantize().
struct Quantization {
  std::int64_t layers = 0;    ///< number of layers in int8
  double relative_error = 0;  ///< largest difference of logits to fp32, of the largest logit
};

/// Quantises a model that was frozen as kQInt8: runs `batch` in fp32, whose values set the ranges
/// of convolutions, turns the layers to int8 irreversibly, and runs the batch again. Weights that
/// belong to no Freezable layer stay fp32.
Quantization quantize(Model& model, const Batch& batch);

}  // namespace scalemark
