// Implements LibTorch's own operators, as a program in plain PyTorch calls them.
#include "models/operator_set.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace scalemark {
namespace {

std::optional<at::Tensor> optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

at::Tensor activated(at::Tensor x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x.relu_();
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::swiglu: {
      const auto halves_of_x = x.chunk(2, -1);
      return at::silu(halves_of_x[0]).mul(halves_of_x[1]);
    }
  }
  throw std::invalid_argument("an unknown activation");
}

at::Tensor activated_anew(const at::Tensor& x, Activation activation) {
  return activation == Activation::relu ? at::relu(x) : activated(x, activation);
}

at::Tensor OperatorSet::conv2d(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& bias, at::IntArrayRef stride,
                               at::IntArrayRef padding, Activation activation) const {
  return activated(at::conv2d(x, weight, optional_of(bias), stride, padding), activation);
}

at::Tensor OperatorSet::batch_norm(const at::Tensor& x, const BatchNormTensors& layer,
                                   const BatchNormRule& rule, Activation activation,
                                   const at::Tensor& residual) const {
  const at::Tensor y =
      at::batch_norm(x, layer.weight, layer.bias, layer.running_mean, layer.running_variance,
                     rule.training, rule.momentum, rule.epsilon, /*cudnn_enabled=*/true);
  return activated(residual.defined() ? y.add_(residual) : y, activation);
}

at::Tensor OperatorSet::norm_of_sum(const at::Tensor& x, const at::Tensor& branch,
                                    double dropout_probability, const at::Tensor& weight,
                                    const at::Tensor& bias, double epsilon) const {
  const at::Tensor sum = branch.defined() ? x + dropout(branch, dropout_probability) : x;
  // The CPU's kernel takes fp32 parameters with bf16 input; CUDA's wants one dtype.
  const auto like_x = [&](const at::Tensor& p) { return x.is_cpu() ? p : p.to(x.scalar_type()); };
  return at::layer_norm(sum, weight.sizes(), like_x(weight), like_x(bias), epsilon);
}

at::Tensor OperatorSet::max_pool(const at::Tensor& x, const PoolWindow& window) const {
  const auto square = [](std::int64_t side) { return std::vector<std::int64_t>(2, side); };
  return at::max_pool2d(x, square(window.size), square(window.stride), square(window.padding),
                        square(1));
}

at::Tensor OperatorSet::rms_norm(const at::Tensor& x, const at::Tensor& weight,
                                 double epsilon) const {
  const at::Tensor wide = x.to(at::promote_types(x.scalar_type(), at::kFloat));
  const at::Tensor root = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon);
  return (wide * root * weight).to(x.scalar_type());
}

AttentionHeads OperatorSet::divided_heads(const at::Tensor& x, std::int64_t key_heads,
                                          const Rotation& rotation) const {
  const auto heads = x.transpose(1, 2).split_with_sizes(
      {x.size(2) - 2 * key_heads, key_heads, key_heads}, /*dim=*/1);
  if (!rotation.cosines.defined()) return {heads[0], heads[1], heads[2]};
  const at::Tensor cosines = rotation.cosines.to(x.scalar_type());
  const at::Tensor sines = rotation.sines.to(x.scalar_type());
  const auto rotated = [&](const at::Tensor& part) {
    const auto half = part.chunk(2, -1);
    return at::cat({half[0] * cosines - half[1] * sines, half[1] * cosines + half[0] * sines}, -1);
  };
  return {rotated(heads[0]), rotated(heads[1]), heads[2]};
}

at::Tensor OperatorSet::attention(const AttentionInputs& inputs, double dropout_probability) const {
  return at::scaled_dot_product_attention(
      inputs.queries, inputs.keys, inputs.values, optional_of(inputs.mask), dropout_probability,
      inputs.causal, /*scale=*/std::nullopt,
      /*enable_gqa=*/inputs.keys.size(1) < inputs.queries.size(1));
}

at::Tensor OperatorSet::dropout(const at::Tensor& x, double probability) const {
  return probability == 0 ? x : at::dropout(x, probability, /*train=*/true);
}

at::Tensor OperatorSet::relu_dropout(const at::Tensor& x, double probability) const {
  return dropout(at::relu(x), probability);
}

at::Tensor OperatorSet::linear(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                               const LayerGate& gate, Activation activation) const {
  return at::linear(activated_anew(x, activation), gate->gate->compute_weight(leaf),
                    optional_of(bias));
}

at::Tensor OperatorSet::cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                      std::int64_t ignored, double label_smoothing) const {
  const at::Tensor wide = logits.to(at::promote_types(logits.scalar_type(), at::kFloat));
  return at::cross_entropy_loss(wide, labels, /*weight=*/{}, at::Reduction::Sum, ignored,
                                label_smoothing);
}

at::Tensor OperatorSet::in_shares(const at::Tensor& x,
                                  const std::function<at::Tensor(const at::Tensor&)>& f) const {
  return f(x);
}

std::unique_ptr<FixedConvolution> OperatorSet::fixed_convolution(const at::Tensor&,
                                                                 const at::Tensor&, at::IntArrayRef,
                                                                 at::IntArrayRef) const {
  return nullptr;
}

bool OperatorSet::places_gradients() const { return false; }

AdamStep OperatorSet::adam_step() const { return nullptr; }

at::Tensor OperatorSet::norm(const at::Tensor& flat) const {
  return at::linalg_vector_norm(flat, 2, std::nullopt, /*keepdim=*/false, at::kDouble);
}

void OperatorSet::add_rows(at::Tensor gradient, const at::Tensor& indices,
                           const at::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  // CUDA's accumulating index_put_ sorts, unlike its index_add_, whose atomics add in any order.
  if (gradient.is_cpu())
    gradient.index_add_(0, indices, rows);
  else
    gradient.index_put_({indices}, rows, /*accumulate=*/true);
}

const OperatorSet& torch_operators() {
  static const OperatorSet set;
  return set;
}

const OperatorSet& standard_operators() {
  return own_operators() ? *own_operators() : torch_operators();
}

}  // namespace scalemark
