// Asks for the kernels of this folder: their grids, their memory, and the autograd functions around
// them. Sums over many rows are made by many programs, and combined by a second kernel.
#include "models/triton/operators.hpp"

#include <ATen/ceil_div.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace scalemark {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Launcher = c10::intrusive_ptr<KernelLauncher>;

constexpr std::int64_t kAlignment = 16;    ///< elements of a row, whose loads are 16 bytes and more
constexpr std::int64_t kTileRows = 32;     ///< BLOCK_ROWS of variants.py
constexpr std::int64_t kTileColumns = 64;  ///< BLOCK of the same kernels
constexpr std::int64_t kPartColumns = 16;  ///< BLOCK of those that combine
constexpr std::int64_t kWidest = 1024;     ///< BLOCK of a row that is normalised
constexpr std::int64_t kFlat = 2048;       ///< BLOCK of elements

bool suits(const KernelLauncher& launcher, const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && x.numel() > 0 && launcher.reaches(x);
}

bool is_aligned(const at::Tensor& x) {
  return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kAlignment == 0;
}

at::Tensor usable(const at::Tensor& x, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  const at::Tensor dense = x.contiguous(format);
  return is_aligned(dense) ? dense : dense.clone();
}

void keep(AutogradContext* context, const Launcher& launcher) {
  context->saved_data["launcher"] = c10::IValue::make_capsule(launcher);
}

Launcher launcher_of(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<KernelLauncher>(
      context->saved_data["launcher"].toCapsule());
}

/// A key for the masks of one call, int64 [1] where `x` is, from LibTorch's generator there.
at::Tensor new_seed(const at::Tensor& x) {
  return at::randint(std::numeric_limits<std::int64_t>::max(), {1}, x.options().dtype(at::kLong));
}

/// Sums [2, programs, columns] over programs.
at::Tensor summed(const KernelLauncher& launcher, const at::Tensor& partial) {
  const std::int64_t programs = partial.size(1), columns = partial.size(2);
  const at::Tensor sums = at::empty({2, columns}, partial.options());
  launcher.launch({"sums_of_parts",
                   {at::ceil_div(columns, kPartColumns), 2},
                   {partial, sums, programs, columns}});
  return sums;
}

/// How rows of channels are divided among programs.
struct RowShares {
  std::int64_t rows, channels, each, programs;
  RowShares(const at::Tensor& x, const KernelLauncher& launcher)
      : rows(x.numel() / x.size(1)), channels(x.size(1)) {
    const std::int64_t wanted = std::max<std::int64_t>(1, launcher.programs() / columns());
    each = at::round_up(at::ceil_div(rows, wanted), kTileRows);
    programs = at::ceil_div(rows, each);
  }
  std::int64_t columns() const { return at::ceil_div(channels, kTileColumns); }
  std::array<std::int64_t, 2> grid() const { return {programs, columns()}; }
};

class NormOfBatch : public torch::autograd::Function<NormOfBatch> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual,
                            const BatchNormTensors& layer, const BatchNormRule& rule, bool relu,
                            const Launcher& launcher) {
    const RowShares shares(x, *launcher);
    const at::Tensor input = usable(x, at::MemoryFormat::ChannelsLast);
    const at::Tensor added =
        residual ? usable(*residual, at::MemoryFormat::ChannelsLast) : at::Tensor();
    const at::TensorOptions fp32 = x.options().dtype(at::kFloat);
    const at::Tensor kept = at::empty({2, shares.channels}, fp32), y = at::empty_like(input),
                     partial = at::empty({2, shares.programs, shares.channels}, fp32);
    launcher->launch({"batch_norm_moments",
                      shares.grid(),
                      {input, partial, shares.rows, shares.channels, shares.each}});
    launcher->launch({"batch_norm_statistics",
                      {at::ceil_div(shares.channels, kPartColumns), 1},
                      {partial, kept, layer.running_mean, layer.running_variance, shares.programs,
                       shares.rows, shares.each, shares.channels, static_cast<float>(rule.momentum),
                       static_cast<float>(rule.epsilon)}});
    launcher->launch({name("batch_norm_apply", residual.has_value(), relu),
                      shares.grid(),
                      {input, residual ? added : input, y, kept, weight, bias, shares.rows,
                       shares.channels, shares.each}});
    context->save_for_backward({input, weight, kept, relu ? y : at::Tensor()});
    context->saved_data["residual"] = residual.has_value();
    keep(context, launcher);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &kept = saved[2];
    const bool relu = saved[3].defined();
    const at::Tensor& y = relu ? saved[3] : x;
    const Launcher launcher = launcher_of(context);
    const RowShares shares(x, *launcher);
    const at::Tensor dy = usable(gradients[0], at::MemoryFormat::ChannelsLast);
    const at::Tensor partial = at::empty({2, shares.programs, shares.channels}, kept.options());
    launcher->launch({name("batch_norm_gradient_sums", false, relu),
                      shares.grid(),
                      {dy, x, y, partial, kept, shares.rows, shares.channels, shares.each}});
    const at::Tensor sums = summed(*launcher, partial);
    const bool residual = context->saved_data["residual"].toBool();
    const bool writes_residual = residual && relu;  // else its gradient is dy
    const at::Tensor dx = at::empty_like(x), dresidual = writes_residual ? at::empty_like(x)
                                                         : residual      ? dy
                                                                         : at::Tensor();
    launcher->launch({name("batch_norm_gradient", writes_residual, relu),
                      shares.grid(),
                      {dy, x, y, dx, writes_residual ? dresidual : dx, kept, sums, weight,
                       shares.rows, shares.channels, shares.each}});
    return {dx, sums[1], sums[0], dresidual, {}, {}, {}, {}};
  }

 private:
  static std::string name(std::string base, bool adds, bool relu) {
    return base + (adds ? "_add" : "") + (relu ? "_relu" : "");
  }
};

class NormOfSum : public torch::autograd::Function<NormOfSum> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& branch,
                            const at::Tensor& weight, const at::Tensor& bias, double probability,
                            double epsilon, const Launcher& launcher) {
    const at::Tensor first = usable(x), second = usable(branch);
    const std::int64_t width = x.size(-1), rows = x.numel() / width;
    const at::Tensor y = at::empty_like(first), sums = at::empty_like(first),
                     kept = at::empty({2, rows}, x.options().dtype(at::kFloat));
    const at::Tensor seed =
        probability > 0 ? new_seed(x) : at::empty({1}, x.options().dtype(at::kLong));
    launcher->launch({probability > 0 ? "add_norm_drop" : "add_norm",
                      {rows, 1},
                      {first, second, weight, bias, y, sums, kept, seed,
                       static_cast<float>(probability), static_cast<float>(epsilon), rows, width}});
    context->save_for_backward({sums, weight, kept, seed});
    context->saved_data["probability"] = probability;
    keep(context, launcher);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &sums = saved[0], &weight = saved[1], &kept = saved[2], &seed = saved[3];
    const Launcher launcher = launcher_of(context);
    const double probability = context->saved_data["probability"].toDouble();
    const std::int64_t width = sums.size(-1), rows = sums.numel() / width;
    const std::int64_t programs = std::min(rows, launcher->programs());
    const at::Tensor dy = usable(gradients[0]);
    const at::Tensor partial = at::empty({2, programs, width}, kept.options()),
                     dx = at::empty_like(sums),
                     dbranch = probability > 0 ? at::empty_like(sums) : dx;
    launcher->launch({probability > 0 ? "add_norm_gradient_drop" : "add_norm_gradient",
                      {programs, 1},
                      {dy, sums, weight, kept, dx, dbranch, partial, seed,
                       static_cast<float>(probability), rows, width}});
    const at::Tensor of_both = summed(*launcher, partial);
    return {dx, dbranch, of_both[1], of_both[0], {}, {}, {}};
  }
};

class DroppedRelu : public torch::autograd::Function<DroppedRelu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double probability,
                            const Launcher& launcher) {
    const at::Tensor input = usable(x), y = at::empty_like(input);
    launcher->launch({"relu_dropout",
                      {at::ceil_div(x.numel(), kFlat), 1},
                      {input, y, new_seed(x), static_cast<float>(probability), x.numel()}});
    context->save_for_backward({y});
    context->saved_data["probability"] = probability;
    keep(context, launcher);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor y = context->get_saved_variables()[0];
    const at::Tensor dy = usable(gradients[0]), dx = at::empty_like(y);
    const auto probability = static_cast<float>(context->saved_data["probability"].toDouble());
    launcher_of(context)->launch({"relu_dropout_gradient",
                                  {at::ceil_div(y.numel(), kFlat), 1},
                                  {dy, y, dx, probability, y.numel()}});
    return {dx, {}, {}};
  }
};

class LossOfClasses : public torch::autograd::Function<LossOfClasses> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, std::int64_t ignored, double smoothing,
                            const Launcher& launcher) {
    const at::Tensor x = usable(logits), label = labels.contiguous();
    const at::Tensor losses = at::empty({x.size(0)}, x.options().dtype(at::kFloat)),
                     normalisers = at::empty_like(losses);
    launcher->launch(
        {"cross_entropy_forward",
         {x.size(0), 1},
         {x, label, losses, normalisers, ignored, static_cast<float>(smoothing), x.size(1)}});
    context->save_for_backward({x, label, normalisers});
    context->saved_data["ignored"] = ignored;
    context->saved_data["smoothing"] = smoothing;
    keep(context, launcher);
    return losses.sum(at::kDouble).to(at::kFloat);
  }

  /// Writes the gradient in the place of the logits: of a vocabulary they are the largest tensor of
  /// a step, and nothing reads them again.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &label = saved[1], &normalisers = saved[2];
    launcher_of(context)->launch(
        {"cross_entropy_gradient",
         {x.size(0), 1},
         {x, label, normalisers, gradients[0].to(at::kFloat),
          context->saved_data["ignored"].toInt(),
          static_cast<float>(context->saved_data["smoothing"].toDouble()), x.size(1)}});
    return {x, {}, {}, {}, {}};
  }
};

class TritonOperators : public OperatorSet {
 public:
  explicit TritonOperators(Launcher launcher) : launcher_(std::move(launcher)) {}

  at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& layer,
                        const BatchNormRule& rule, Activation activation,
                        const at::Tensor& residual) const override {
    const bool relu = activation == Activation::relu;
    if (!rule.training || !suits(*launcher_, x) || x.dim() != 4 || x.size(1) % kAlignment != 0 ||
        x.numel() <= x.size(1) || !x.is_contiguous(at::MemoryFormat::ChannelsLast) ||
        (activation != Activation::none && !relu) || (residual.defined() && !relu))
      return OperatorSet::batch_norm(x, layer, rule, activation, residual);
    return NormOfBatch::apply(x, layer.weight, layer.bias,
                              residual.defined() ? std::optional(residual) : std::nullopt, layer,
                              rule, relu, launcher_);
  }

  at::Tensor norm_of_sum(const at::Tensor& x, const at::Tensor& branch, double probability,
                         const at::Tensor& weight, const at::Tensor& bias,
                         double epsilon) const override {
    if (!branch.defined() || !suits(*launcher_, x) || x.size(-1) % kAlignment != 0 ||
        x.size(-1) > kWidest || x.sizes() != branch.sizes() ||
        branch.scalar_type() != x.scalar_type())
      return OperatorSet::norm_of_sum(x, branch, probability, weight, bias, epsilon);
    return NormOfSum::apply(x, branch, weight, bias, probability, epsilon, launcher_);
  }

  at::Tensor relu_dropout(const at::Tensor& x, double probability) const override {
    if (!suits(*launcher_, x) || x.numel() % kAlignment != 0 || probability == 0)
      return OperatorSet::relu_dropout(x, probability);
    return DroppedRelu::apply(x, probability, launcher_);
  }

  at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, std::int64_t ignored,
                           double label_smoothing) const override {
    if (!suits(*launcher_, logits) || logits.dim() != 2 || logits.size(1) % kAlignment != 0)
      return OperatorSet::cross_entropy(logits, labels, ignored, label_smoothing);
    return LossOfClasses::apply(logits, labels, ignored, label_smoothing, launcher_);
  }

 private:
  Launcher launcher_;
};

}  // namespace

std::string kinds_of(const KernelCall& call) {
  std::string kinds;
  for (const auto& argument : call.arguments) kinds += "pnf"[argument.index()];
  return kinds;
}

std::unique_ptr<OperatorSet> triton_operators(c10::intrusive_ptr<KernelLauncher> launcher) {
  return std::make_unique<TritonOperators>(std::move(launcher));
}

}  // namespace scalemark
