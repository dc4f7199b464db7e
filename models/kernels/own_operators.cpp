// Selects the operators of this folder in place of LibTorch's where these suit. Everything outside
// this folder reaches its kernels through this file.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include "models/kernels/kernels.hpp"
#include "models/operator_set.hpp"
#if defined(_OPENMP)
#include <omp.h>
#endif

#include <algorithm>
#include <vector>

#include "models/kernels/loops.hpp"

namespace scalemark {
namespace {

class WinogradConvolution : public FixedConvolution {
 public:
  explicit WinogradConvolution(const at::Tensor& weight) : filters_(winograd_filters(weight)) {}
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& bias, bool relu,
                        const at::Tensor& residual) const override {
    return winograd_conv2d(x, filters_, bias, relu, residual);
  }

 private:
  WinogradFilters filters_;
};

class PixelConvolution : public FixedConvolution {
 public:
  PixelConvolution(at::Tensor weight, at::IntArrayRef stride)
      : weight_(std::move(weight)), stride_(stride.vec()) {}
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& bias, bool relu,
                        const at::Tensor& residual) const override {
    return fixed_pixel_conv2d(x, weight_, bias, stride_, relu, residual);
  }

 private:
  at::Tensor weight_;
  std::vector<std::int64_t> stride_;
};

class OwnOperators : public OperatorSet {
 public:
  at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    at::IntArrayRef stride, at::IntArrayRef padding,
                    Activation activation) const override {
    const bool trains = at::GradMode::is_enabled() && weight.requires_grad();
    if (suits_winograd(x, weight, stride, padding) ||
        (trains && suits_weight_gradient(x, weight, stride, padding)))
      // Returns the activation in a new tensor, since the result of one of scalemark's autograd
      // functions must not be overwritten.
      return activated_anew(conv2d_trained(x, weight, bias, stride, padding), activation);
    return OperatorSet::conv2d(x, weight, bias, stride, padding, activation);
  }

  at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& layer,
                        const BatchNormRule& rule, Activation activation,
                        const at::Tensor& residual) const override {
    const bool none_or_relu = activation == Activation::none || activation == Activation::relu;
    if (rule.training && none_or_relu && can_fuse_batch_norm(x))
      return batch_norm_fused(x, layer, rule.momentum, rule.epsilon, activation == Activation::relu,
                              residual);
    return OperatorSet::batch_norm(x, layer, rule, activation, residual);
  }

  at::Tensor max_pool(const at::Tensor& x, const PoolWindow& window) const override {
    return suits_max_pool(x, window) ? max_pool_fused(x, window) : OperatorSet::max_pool(x, window);
  }

  at::Tensor norm_of_sum(const at::Tensor& x, const at::Tensor& branch, double dropout_probability,
                         const at::Tensor& weight, const at::Tensor& bias,
                         double epsilon) const override {
    return suits_norm_of_sum(x, branch, weight, bias)
               ? norm_of_sum_fused(x, branch, dropout_probability, weight, bias, epsilon)
               : OperatorSet::norm_of_sum(x, branch, dropout_probability, weight, bias, epsilon);
  }

  at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight,
                      double epsilon) const override {
    return suits_rms_norm(x, weight) ? rms_norm_fused(x, weight, epsilon)
                                     : OperatorSet::rms_norm(x, weight, epsilon);
  }

  AttentionHeads divided_heads(const at::Tensor& x, std::int64_t key_heads,
                               const Rotation& rotation) const override {
    return suits_divided_heads(x, rotation) ? divided_heads_fused(x, key_heads, rotation)
                                            : OperatorSet::divided_heads(x, key_heads, rotation);
  }

  at::Tensor attention(const AttentionInputs& inputs, double dropout_probability) const override {
    if (suits_tiled_attention(inputs)) return tiled_attention(inputs, dropout_probability);
    if (suits_attention(inputs, dropout_probability))
      return attention_with_dropout(inputs, dropout_probability);
    if (suits_attention_by_products(inputs, dropout_probability))
      return attention_by_products(inputs);
    return OperatorSet::attention(inputs, dropout_probability);
  }

  at::Tensor dropout(const at::Tensor& x, double probability) const override {
    return scalemark::dropout(x, probability);
  }

  at::Tensor relu_dropout(const at::Tensor& x, double probability) const override {
    return scalemark::relu_dropout(x, probability);
  }

  at::Tensor linear(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                    const LayerGate& gate, Activation activation) const override {
    return linear_in_place(x, leaf, bias, gate, activation);
  }

  at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, std::int64_t ignored,
                           double label_smoothing) const override {
    return suits_cross_entropy(logits)
               ? cross_entropy_fused(logits, labels, ignored, label_smoothing)
               : OperatorSet::cross_entropy(logits, labels, ignored, label_smoothing);
  }

  at::Tensor in_shares(const at::Tensor& x,
                       const std::function<at::Tensor(const at::Tensor&)>& f) const override {
    return scalemark::in_shares(x, f);
  }

  std::unique_ptr<FixedConvolution> fixed_convolution(const at::Tensor& x, const at::Tensor& weight,
                                                      at::IntArrayRef stride,
                                                      at::IntArrayRef padding) const override {
    if (suits_winograd(x, weight, stride, padding))
      return std::make_unique<WinogradConvolution>(weight);
    if (suits_fixed_pixels(x, weight, stride, padding))
      return std::make_unique<PixelConvolution>(weight, stride);
    return nullptr;
  }

  bool places_gradients() const override { return true; }

  AdamStep adam_step() const override { return &adam_in_one_pass; }

  at::Tensor norm(const at::Tensor& flat) const override {
    return flat.is_cpu() ? norm_of_blocks(flat) : OperatorSet::norm(flat);
  }

  void add_rows(at::Tensor gradient, const at::Tensor& indices,
                const at::Tensor& rows) const override {
    if (!gradient.is_cpu()) return OperatorSet::add_rows(gradient, indices, rows);
    add_rows_in_order(gradient, indices, rows);
  }
};

}  // namespace

at::Tensor in_shares(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f) {
#if defined(_OPENMP)
  const std::int64_t count = std::min<std::int64_t>(at::get_num_threads(), x.size(0));
  if (count <= 1 || at::in_parallel_region()) return f(x);
  const std::vector<at::Tensor> shares = x.tensor_split(count);
  std::vector<at::Tensor> results(shares.size());
  const at::ThreadLocalState modes;
  return as_operator("scalemark::in_shares", {x}, [&] {
    at::parallel_for(0, static_cast<std::int64_t>(shares.size()), 1, [&](auto begin, auto end) {
      const at::ThreadLocalStateGuard guard(modes);
      omp_set_num_threads(1);  // of this thread in this loop: oneDNN plans for as many
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        results[i] = f(shares[i]);
    });
    return at::cat(results);
  });
#else
  return f(x);
#endif
}

const OperatorSet* own_operators() {
  static const OwnOperators set;
  return &set;
}

}  // namespace scalemark
