// Provides the layers of which networks are built: fp32 parameters, activations in the compute
// dtype (that of the input). Each layer passes the gate before it reads its parameters; none
// depends on ranks, precision or optimizers. For inference some take a frozen form
// (models/frozen.hpp).
#pragma once

#include <torch/expanding_array.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/model.hpp"
#include "models/operator_set.hpp"
#include "models/parameter_gate.hpp"

namespace scalemark {

class FrozenConv;
class FrozenLinear;

/// Returns fp32 for quint8, whose means would be rounded to its steps, and `x` itself for other
/// types.
at::Tensor dequantized(const at::Tensor& x);

/// Concatenates like at::cat(). quint8 tensors get the coarsest scale of the parts, where at::cat()
/// would use that of the first.
at::Tensor concatenated(const std::vector<at::Tensor>& parts, std::int64_t dim);

/// Computes the maximum over squares of `size` pixels. It also accepts quint8, whose operator takes
/// two values of each parameter.
at::Tensor max_pool(const LayerGate& gate, const at::Tensor& x, std::int64_t size,
                    std::int64_t stride, std::int64_t padding = 0);

/// Torch's constant, which batch normalisation adds to the variance.
inline constexpr double kNormEpsilon = 1e-5;

/// A layer with a faster form for weights that no longer change.
class Freezable {
 public:
  virtual ~Freezable() = default;
  /// Takes the frozen form irreversibly, computing in `dtype`, and frees parameters that it no
  /// longer reads.
  virtual void freeze(at::ScalarType dtype) = 0;
  /// Makes a layer that was frozen as kQInt8 compute in int8 from now on. Call it after a forward
  /// pass.
  virtual void quantize() = 0;
};

/// The options of a convolution in addition to its channels. A single number serves for rows and
/// columns.
struct ConvOptions {
  torch::ExpandingArray<2> kernel = 3;
  std::int64_t stride = 1;
  torch::ExpandingArray<2> padding = 1;
  bool bias = false;
  bool channels_last = true;  ///< memory format of the weight
};

/// A 2-d convolution. Weight [out, in, *kernel], Kaiming normal with fan_out and ReLU gain (He et
/// al. 2015b, equation 14); bias [out], zero.
class Conv2d : public torch::nn::Module, public Freezable {
 public:
  Conv2d(LayerGate gate, std::int64_t in, std::int64_t out, const ConvOptions& options);
  /// Maps [N, in, H, W] to [N, out, H', W'], in the dtype of `x`.
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none);
  void freeze(at::ScalarType dtype) override;
  void quantize() override;
  /// Returns the frozen convolution with every output multiplied by `scale` and moved by `shift`
  /// [out], float64.
  std::shared_ptr<FrozenConv> frozen(at::ScalarType dtype, const at::Tensor& scale,
                                     const at::Tensor& shift);

 private:
  LayerGate gate_;
  ConvOptions options_;
  at::Tensor weight_, bias_;
  std::shared_ptr<FrozenConv> frozen_;
};

/// A batch normalisation (Ioffe and Szegedy 2015) with torch's defaults: momentum 0.1, gamma 1,
/// beta 0. Parameters and running statistics stay fp32 whatever the dtype of the input.
class BatchNorm2d : public torch::nn::Module {
 public:
  BatchNorm2d(LayerGate gate, std::int64_t channels, double epsilon = kNormEpsilon);
  /// Returns activation(normalised x + residual), [N, channels, H, W], in the shape and dtype of x.
  /// It uses batch statistics while training, else running ones. `residual` has the shape of x;
  /// undefined means none.
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none,
                     const at::Tensor& residual = {});
  /// Returns {gamma / sqrt(running variance + eps), beta - running mean x that}, float64
  /// [channels]: with running statistics the layer is y = scale x + shift.
  std::pair<at::Tensor, at::Tensor> scale_and_shift() const;

 private:
  LayerGate gate_;
  double epsilon_;
  at::Tensor weight_, bias_, running_mean_, running_var_;
};

/// A convolution without bias, then batch normalisation. When frozen, the normalisation is folded
/// into the convolution (Jacob et al. 2018, section 3.2).
class ConvNorm : public torch::nn::Module, public Freezable {
 public:
  ConvNorm(const LayerGate& gate, std::int64_t in, std::int64_t out, const ConvOptions& options,
           double epsilon = kNormEpsilon);
  /// Maps [N, in, H, W] to [N, out, H', W'], in the dtype of `x`.
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none);
  /// Returns relu(normalised convolution + residual). It may overwrite `residual` where no
  /// gradients are computed. `residual` [N, out, H', W'] must not share memory with `x`.
  at::Tensor add_relu(const at::Tensor& x, const at::Tensor& residual);
  void freeze(at::ScalarType dtype) override;
  void quantize() override;
  bool is_frozen() const { return frozen_ != nullptr; }
  bool is_quantized() const;

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::shared_ptr<FrozenConv> frozen_;
};

/// Says how the weight of a linear layer is initialised. `torch`: weight and bias uniform in
/// +-1/sqrt(in), as torch.nn.Linear. `xavier`: weight uniform in +-sqrt(6 / (in + out)) (Glorot and
/// Bengio 2010), bias zero. `bert`: weight truncated_normal(), bias zero. `normal`: weight normal
/// with standard deviation 0.02, bias zero.
enum class LinearInit { torch, xavier, bert, normal };

/// The properties of a linear layer in addition to its widths.
struct LinearOptions {
  LinearInit init = LinearInit::torch;
  bool bias = true;
  double gain = 1;  ///< multiplies the initial weight
};

/// Returns an fp32 tensor for the values of a new parameter.
at::Tensor new_parameter(at::IntArrayRef shape);

/// Returns the fp32 values of a new parameter: uniform in +-`bound`, or normal with mean 0 and a
/// standard deviation. LibTorch's CPU generator decides them; the threads that draw them do not.
at::Tensor uniform_parameter(at::IntArrayRef shape, double bound);
at::Tensor normal_parameter(at::IntArrayRef shape, double deviation);

/// Returns a new parameter, normal with standard deviation 0.02 and truncated at two standard
/// deviations (Devlin et al. 2018; google-research/bert, create_initializer).
at::Tensor truncated_normal(at::IntArrayRef shape);

/// Returns the generator with a number of those that a seed gives. Neighbouring numbers and seeds
/// give unrelated values.
at::Generator numbered_generator(std::uint64_t seed, std::int64_t number);

/// Computes y = x W^T + b with weight [out, in] and, where it has one, bias [out].
class Linear : public torch::nn::Module, public Freezable {
 public:
  Linear(LayerGate gate, std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  /// Maps [..., in] to [..., out], in the dtype of `x`.
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::none);
  /// Returns forward(activation(x)); training need not keep activation(x). Do not call it on a
  /// frozen layer.
  at::Tensor forward_of(const at::Tensor& x, Activation activation);
  void freeze(at::ScalarType dtype) override;
  void quantize() override;

 private:
  void pass_gate();

  LayerGate gate_;
  at::Tensor weight_, bias_;
  std::shared_ptr<FrozenLinear> frozen_;
};

/// A sample with this label has no loss.
inline constexpr std::int64_t kIgnoredLabel = -100;

/// Returns the sum over samples of the cross entropy of `logits` [batch, classes], in fp32 at
/// least, and labels [batch], kIgnoredLabel left out. `label_smoothing` of the probability is
/// spread over all classes (Szegedy et al. 2016). By LibTorch's operator, which suits the few
/// classes of an image.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             double label_smoothing = 0);
/// The same by one of `operators`, for a vocabulary.
at::Tensor cross_entropy_sum(const OperatorSet& operators, const at::Tensor& logits,
                             const at::Tensor& labels, double label_smoothing = 0);

/// Returns the bias in the dtype of `x`. Biases are few and stay fp32 masters, but convolutions and
/// matrix products need them in the dtype of their input. An undefined bias stays undefined.
at::Tensor bias_like(const at::Tensor& bias, const at::Tensor& x);

/// Converts to fp32 at least, in which logits leave a network.
at::Tensor to_fp32(const at::Tensor& logits);

}  // namespace scalemark
