// Computes the loss of each row and its gradient. The forward pass keeps two numbers of each row
// for the backward pass. Sums over the classes of a row are kept in as many lanes as the widest
// vectors have, so that they do not depend on the processor.
#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// The sums of a row that the loss needs.
struct RowSums {
  float highest;       ///< logit
  float exponentials;  ///< sum of those of the differences from it
  float sum;           ///< of the logits
};
RowSums sums_of(const float* logits, std::int64_t classes);
RowSums sums_of(const c10::BFloat16* logits, std::int64_t classes);

/// Computes gradient = scale (inverse exp(logit - highest) - share).
template <typename T>
struct CrossEntropyGradient {
  const T* logits;
  T* gradient;
  std::int64_t classes;
  float highest, inverse, scale, share;
};
void run(const CrossEntropyGradient<float>& row);
void run(const CrossEntropyGradient<c10::BFloat16>& row);

namespace {

constexpr std::int64_t kLanes = 64;

/// Sets lane[i % kLanes] = step(lane, value of i) for every element i of the row.
template <typename T, typename Step>
SCALEMARK_INLINE void fold(const T* x, std::int64_t count, float* lane, const Step& step) {
  std::int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t i = 0; i < kLanes; ++i) lane[i] = step(lane[i], load(x[c + i]));
  }
  for (std::int64_t i = 0; c < count; ++c, ++i) lane[i] = step(lane[i], load(x[c]));
}

template <typename T>
SCALEMARK_INLINE RowSums row_sums(const T* logits, std::int64_t classes) {
  float most[kLanes], sums[kLanes] = {};
  for (float& lane : most) lane = -std::numeric_limits<float>::infinity();
  fold(logits, classes, most, [](float lane, float x) { return x > lane ? x : lane; });
  float highest = most[0];
  for (const float lane : most) highest = lane > highest ? lane : highest;
  fold(logits, classes, sums, [](float lane, float x) { return lane + x; });
  double sum = 0, exponentials = 0;
  for (float& lane : sums) {
    sum += lane;
    lane = 0;
  }
  fold(logits, classes, sums,
       [highest](float lane, float x) { return lane + exp_below_zero(x - highest); });
  for (const float lane : sums) exponentials += lane;
  return {highest, static_cast<float>(exponentials), static_cast<float>(sum)};
}

template <typename T>
SCALEMARK_INLINE void gradient_of(const CrossEntropyGradient<T>& row) {
  const auto [logits, gradient, classes, highest, inverse, scale, share] = row;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < classes; ++c)
    store(gradient[c], scale * (inverse * exp_below_zero(load(logits[c]) - highest) - share));
}

}  // namespace

SCALEMARK_VECTOR_LOOP RowSums sums_of(const float* logits, std::int64_t classes) {
  return row_sums(logits, classes);
}
SCALEMARK_VECTOR_LOOP RowSums sums_of(const c10::BFloat16* logits, std::int64_t classes) {
  return row_sums(logits, classes);
}
SCALEMARK_VECTOR_LOOP void run(const CrossEntropyGradient<float>& row) { gradient_of(row); }
SCALEMARK_VECTOR_LOOP void run(const CrossEntropyGradient<c10::BFloat16>& row) { gradient_of(row); }

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Says how the probability of a label is spread over the classes.
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
  const std::int64_t rows = logits.size(0), classes = logits.size(1), stride = logits.stride(0);
  const T* const x = logits.const_data_ptr<T>();
  const std::int64_t* const label = labels.const_data_ptr<std::int64_t>();
  float* const highest = kept.mutable_data_ptr<float>();
  std::vector<double> losses(static_cast<std::size_t>(rows));
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      if (label[row] == target.ignored) continue;
      const RowSums sums = sums_of(x + row * stride, classes);
      const double hit = load(x[row * stride + label[row]]);
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

/// Writes the gradient of the logits, whose rows lie as far apart as theirs.
template <typename T>
void gradient_of(const at::Tensor& logits, const at::Tensor& labels, const Target& target,
                 const at::Tensor& kept, float scale, at::Tensor& gradient) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1), stride = logits.stride(0);
  const T* const x = logits.const_data_ptr<T>();
  T* const dx = gradient.mutable_data_ptr<T>();
  const std::int64_t* const label = labels.const_data_ptr<std::int64_t>();
  const float* const highest = kept.const_data_ptr<float>();
  const auto share = static_cast<float>(target.share);
  const auto hit = static_cast<float>(target.share + 1 - target.smoothing);
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const from = x + row * stride;
      T* const to = dx + row * stride;
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
    const at::Tensor x = logits.stride(1) == 1 ? logits : logits.contiguous();
    const at::Tensor label = labels.contiguous();
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
    at::Tensor dx = at::empty_strided(x.sizes(), x.strides(), x.options());
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
