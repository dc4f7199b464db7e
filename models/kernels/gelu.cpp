// Divides the loops of GELU among threads.
#include "models/kernels/gelu.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "models/kernels/as_operator.hpp"
#include "models/kernels/gelu_loops.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kElementsOfAThread = 8192;  ///< or more

/// gelu(x); `dy`, where there is one, becomes the gradient of x.
template <typename T>
at::Tensor in_one_pass(const at::Tensor& x, at::Tensor* dy) {
  at::Tensor y = at::empty_like(x);
  const T* const from = x.const_data_ptr<T>();
  T* const to = y.mutable_data_ptr<T>();
  T* const gradient = dy ? dy->mutable_data_ptr<T>() : nullptr;
  at::parallel_for(0, x.numel(), kElementsOfAThread, [&](std::int64_t begin, std::int64_t end) {
    if (gradient)
      gelu_backward(from + begin, to + begin, gradient + begin, end - begin);
    else
      gelu_forward(from + begin, to + begin, end - begin);
  });
  return y;
}

at::Tensor of_its_type(const at::Tensor& x, at::Tensor* dy) {
  return x.scalar_type() == at::kFloat ? in_one_pass<float>(x, dy)
                                       : in_one_pass<c10::BFloat16>(x, dy);
}

}  // namespace

bool suits_gelu(const at::Tensor& x) { return suits_loops(x) && x.is_contiguous(); }

at::Tensor gelu_fused(const at::Tensor& x) {
  return as_operator("scalemark::gelu", {x}, [&] { return of_its_type(x, nullptr); });
}

at::Tensor gelu_and_gradient(const at::Tensor& x, at::Tensor& dy) {
  return as_operator("scalemark::gelu_backward", {dy, x}, [&] { return of_its_type(x, &dy); });
}

}  // namespace scalemark
