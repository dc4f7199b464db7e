// Computes the loss of each row and its gradient. The forward pass keeps two numbers of each row
// for the backward pass.
#include "models/kernels/cross_entropy.hpp"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "models/kernels/as_operator.hpp"
#include "models/kernels/cross_entropy_loops.hpp"
#include "models/kernels/elements.hpp"

namespace scalemark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// How the probability of a label is spread.
struct Target {
  std::int64_t ignored;
  double smoothing, share;  ///< share: of every class

  Target(std::int64_t left_out, double label_smoothing, std::int64_t classes)
      : ignored(left_out),
        smoothing(label_smoothing),
        share(label_smoothing / static_cast<double>(classes)) {}
};

void check_labels(const at::Tensor& labels, std::int64_t classes, std::int64_t ignored) {
  const std::int64_t* const label = labels.const_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < labels.numel(); ++row)
    TORCH_CHECK_INDEX(label[row] == ignored || (label[row] >= 0 && label[row] < classes), "Target ",
                      label[row], " is out of bounds.");
}

template <typename T>
at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& labels, const Target& target,
                   at::Tensor& kept) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const T* const x = logits.const_data_ptr<T>();
  const std::int64_t* const label = labels.const_data_ptr<std::int64_t>();
  float* const highest = kept.mutable_data_ptr<float>();
  std::vector<double> losses(static_cast<std::size_t>(rows));
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      if (label[row] == target.ignored) continue;
      const RowSums sums = sums_of(x + row * classes, classes);
      const double hit = load(x[row * classes + label[row]]);
      highest[row] = sums.highest;
      highest[rows + row] = 1 / sums.exponentials;
      double& loss = losses[static_cast<std::size_t>(row)];
      loss = sums.highest + std::log(static_cast<double>(sums.exponentials)) -
             (1 - target.smoothing) * hit;
      if (target.share > 0) loss -= target.share * sums.sum;  // which may be infinite
    }
  });
  double loss = 0;
  for (const double of_row : losses) loss += of_row;
  return at::full({}, loss, at::kFloat);
}

template <typename T>
void gradient_of(const at::Tensor& logits, const at::Tensor& labels, const Target& target,
                 const at::Tensor& kept, float scale, at::Tensor& gradient) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const T* const x = logits.const_data_ptr<T>();
  T* const dx = gradient.mutable_data_ptr<T>();
  const std::int64_t* const label = labels.const_data_ptr<std::int64_t>();
  const float* const highest = kept.const_data_ptr<float>();
  const auto share = static_cast<float>(target.share);
  const auto hit = static_cast<float>(target.share + 1 - target.smoothing);
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const from = x + row * classes;
      T* const to = dx + row * classes;
      if (label[row] == target.ignored) {
        std::fill(to, to + classes, T(0.f));
        continue;
      }
      CrossEntropyGradient<T> loop{from,  to,   classes, highest[row], highest[rows + row],
                                   scale, share};
      run(loop);
      loop.logits += label[row];
      loop.gradient += label[row];
      loop.classes = 1;
      loop.share = hit;
      run(loop);
    }
  });
}

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, std::int64_t ignored, double smoothing) {
    const at::Tensor x = logits.contiguous(), label = labels.contiguous();
    check_labels(label, x.size(1), ignored);
    at::Tensor kept = at::empty({2, x.size(0)}, at::kFloat);
    const Target target(ignored, smoothing, x.size(1));
    context->save_for_backward({x, label, kept});
    context->saved_data["ignored"] = ignored;
    context->saved_data["smoothing"] = smoothing;
    return as_operator("scalemark::cross_entropy", {x, label}, [&] {
      return x.scalar_type() == at::kFloat ? loss_of<float>(x, label, target, kept)
                                           : loss_of<c10::BFloat16>(x, label, target, kept);
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &label = saved[1];
    const Target target(context->saved_data["ignored"].toInt(),
                        context->saved_data["smoothing"].toDouble(), x.size(1));
    const auto scale = gradients[0].item<float>();
    at::Tensor dx = at::empty_like(x);
    x.scalar_type() == at::kFloat
        ? gradient_of<float>(x, label, target, saved[2], scale, dx)
        : gradient_of<c10::BFloat16>(x, label, target, saved[2], scale, dx);
    return {dx, {}, {}, {}};
  }
};

}  // namespace

bool suits_cross_entropy(const at::Tensor& logits) {
  return suits_loops(logits) && logits.dim() == 2;
}

at::Tensor cross_entropy_fused(const at::Tensor& logits, const at::Tensor& labels,
                               std::int64_t ignored, double label_smoothing) {
  return CrossEntropy::apply(logits, labels, ignored, label_smoothing);
}

}  // namespace scalemark
