// Computes root mean square normalisation in one pass over memory in each direction. A row is small
// enough to stay in cache between the loop that sums and the one that writes.
#include <ATen/Parallel.h>

#include <cmath>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// A row of x and what is computed of it. `root` is 1 / sqrt(mean(x^2) + epsilon).
template <typename T>
struct NormRow {
  const T* x;
  const float* weight;
  std::int64_t width;
  float epsilon;
  T* y;                    ///< forward
  const T* gradient_of_y;  ///< backward
  T* gradient_of_x;
  float* gradient_of_weight;  ///< is added to
  float root;                 ///< of the forward pass
};
/// Writes y and returns the root.
float rms_forward(const NormRow<float>& row);
float rms_forward(const NormRow<c10::BFloat16>& row);
/// Writes the gradients: with g = dy weight, dx = root (g - x root^2 mean(g x)), dweight += dy x
/// root.
void rms_backward(const NormRow<float>& row);
void rms_backward(const NormRow<c10::BFloat16>& row);

namespace {

template <typename T>
SCALEMARK_INLINE float forward_of(const NormRow<T>& row) {
  const T* const x = row.x;
  T* const y = row.y;
  const float* const weight = row.weight;
  const float sum = lane_sum(row.width, [x](std::int64_t i) {
    const float value = load(x[i]);
    return value * value;
  });
  const float root = 1.f / std::sqrt(sum / static_cast<float>(row.width) + row.epsilon);
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.width; ++i) store(y[i], load(x[i]) * root * weight[i]);
  return root;
}

template <typename T>
SCALEMARK_INLINE void backward_of(const NormRow<T>& row) {
  const T *const x = row.x, *const dy = row.gradient_of_y;
  T* const dx = row.gradient_of_x;
  float* const dweight = row.gradient_of_weight;
  const float *const weight = row.weight, root = row.root;
  const float sum =
      lane_sum(row.width, [=](std::int64_t i) { return load(dy[i]) * weight[i] * load(x[i]); });
  const float mean = sum / static_cast<float>(row.width) * root * root;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.width; ++i) {
    const float gradient = load(dy[i]), value = load(x[i]);
    dweight[i] += gradient * value * root;
    store(dx[i], root * (gradient * weight[i] - value * mean));
  }
}

}  // namespace

SCALEMARK_VECTOR_LOOP float rms_forward(const NormRow<float>& row) { return forward_of(row); }
SCALEMARK_VECTOR_LOOP float rms_forward(const NormRow<c10::BFloat16>& row) {
  return forward_of(row);
}
SCALEMARK_VECTOR_LOOP void rms_backward(const NormRow<float>& row) { backward_of(row); }
SCALEMARK_VECTOR_LOOP void rms_backward(const NormRow<c10::BFloat16>& row) { backward_of(row); }

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The rows whose weight gradients are summed together, whatever the number of threads.
constexpr std::int64_t kRowsOfABlock = 64;

template <typename T>
NormRow<T> row_of(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  NormRow<T> row{};
  row.x = x.const_data_ptr<T>();
  row.weight = weight.const_data_ptr<float>();
  row.width = weight.size(0);
  row.epsilon = static_cast<float>(epsilon);
  return row;
}

template <typename T>
void forward_rows(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor& y,
                  at::Tensor& roots) {
  NormRow<T> first = row_of<T>(x, weight, epsilon);
  first.y = y.mutable_data_ptr<T>();
  float* const root = roots.mutable_data_ptr<float>();
  at::parallel_for(0, roots.numel(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      NormRow<T> row = first;
      row.x += i * row.width;
      row.y += i * row.width;
      root[i] = rms_forward(row);
    }
  });
}

template <typename T>
void backward_rows(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                   const at::Tensor& roots, at::Tensor& dx, at::Tensor& dweights) {
  NormRow<T> first = row_of<T>(x, weight, 0);
  first.gradient_of_y = dy.const_data_ptr<T>();
  first.gradient_of_x = dx.mutable_data_ptr<T>();
  float* const sums = dweights.mutable_data_ptr<float>();
  const float* const root = roots.const_data_ptr<float>();
  at::parallel_for(0, dweights.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t last = std::min((block + 1) * kRowsOfABlock, roots.numel());
      for (std::int64_t i = block * kRowsOfABlock; i < last; ++i) {
        NormRow<T> row = first;
        row.x += i * row.width;
        row.gradient_of_y += i * row.width;
        row.gradient_of_x += i * row.width;
        row.gradient_of_weight = sums + block * row.width;
        row.root = root[i];
        rms_backward(row);
      }
    }
  });
}

class RootMeanSquareNorm : public torch::autograd::Function<RootMeanSquareNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, double epsilon) {
    const at::Tensor x = input.contiguous();
    at::Tensor roots = at::empty({x.numel() / weight.size(0)}, at::kFloat);
    context->save_for_backward({x, weight, roots});
    return as_operator("scalemark::rms_norm", {x}, [&] {
      at::Tensor y = at::empty_like(x);
      x.scalar_type() == at::kFloat ? forward_rows<float>(x, weight, epsilon, y, roots)
                                    : forward_rows<c10::BFloat16>(x, weight, epsilon, y, roots);
      return y;
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &roots = saved[2];
    const at::Tensor dy = gradients[0].contiguous();
    at::Tensor sums =
        at::zeros({divided_up(roots.numel(), kRowsOfABlock), weight.size(0)}, weight.options());
    const at::Tensor result = as_operator("scalemark::rms_norm_backward", {dy, x}, [&] {
      at::Tensor dx = at::empty_like(x);
      x.scalar_type() == at::kFloat ? backward_rows<float>(dy, x, weight, roots, dx, sums)
                                    : backward_rows<c10::BFloat16>(dy, x, weight, roots, dx, sums);
      return dx;
    });
    return {result, sums.sum(0), {}};
  }
};

}  // namespace

bool suits_rms_norm(const at::Tensor& x, const at::Tensor& weight) {
  return suits_loops(x) && weight.scalar_type() == at::kFloat && weight.is_contiguous();
}

at::Tensor rms_norm_fused(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return RootMeanSquareNorm::apply(x, weight, epsilon);
}

}  // namespace scalemark
