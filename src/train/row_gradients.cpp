// Adds rows to dense gradients in a fixed order, and stores collected rows.
#include "train/row_gradients.hpp"

#include <algorithm>

namespace scalemark {
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
