// See row_gradients.hpp.
#include "train/row_gradients.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace scalemark {
namespace {

/// Rows of a table that one thread owns at least.
constexpr std::int64_t kRowsPerTask = 64;

void add(const float* __restrict from, float* __restrict to, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;  // which the compiler can add at once
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) to[i + lane] += from[i + lane];
  for (; i < count; ++i) to[i] += from[i];
}

}  // namespace

void add_rows(at::Tensor gradient, const at::Tensor& indices, const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  if (!gradient.is_cpu()) {
    // CUDA's accumulating index_put_ sorts, unlike index_add_, whose atomics add in any order.
    gradient.index_put_({indices}, rows, /*accumulate=*/true);
    return;
  }
  const std::int64_t width = gradient.size(1), count = indices.numel();
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  const float* from = rows.const_data_ptr<float>();
  float* to = gradient.mutable_data_ptr<float>();
  // A thread owns rows of the table, and looks for them in all of the indices.
  at::parallel_for(0, gradient.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i)
      if (index[i] >= begin && index[i] < end) add(from + i * width, to + index[i] * width, width);
  });
}

RowBuffer::RowBuffer(std::int64_t width, std::int64_t dense, const at::TensorOptions& fp32)
    : dense_(dense),
      indices_(at::arange(dense, fp32.dtype(at::kLong))),
      rows_(at::zeros({dense, width}, fp32)) {
  clear();
}

void RowBuffer::clear() { count_ = dense_; }

void RowBuffer::append(const at::Tensor& indices, const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  const std::int64_t more = indices.numel();
  reserve(count_ + more);
  indices_.narrow(0, count_, more).copy_(indices);
  rows_.narrow(0, count_, more).copy_(rows);
  count_ += more;
}

void RowBuffer::reserve(std::int64_t count) {
  if (count <= rows_.size(0)) return;
  const std::int64_t size = std::max(count, dense_ + 2 * (rows_.size(0) - dense_));
  const auto larger = [&](const at::Tensor& old, at::IntArrayRef shape) {
    at::Tensor made = at::empty(shape, old.options());
    made.narrow(0, 0, count_).copy_(old.narrow(0, 0, count_));
    return made;
  };
  indices_ = larger(indices_, {size});
  rows_ = larger(rows_, {size, rows_.size(1)});
}

}  // namespace scalemark
