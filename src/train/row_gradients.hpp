// Gradients of embedding tables as rows (Horovod's and TensorFlow's IndexedSlices): what a rank has
// collected of one table in a step.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace scalemark {

/// Stores rows of one table contiguously. Its memory grows during the first steps and then stays.
class RowBuffer {
 public:
  RowBuffer() = default;
  /// `dense` is the number of the table's own V rows at the front, which dense() returns; else 0.
  RowBuffer(std::int64_t width, std::int64_t dense, const at::TensorOptions& fp32);

  /// Begins a step: only the V rows of a dense gradient are left, and their values are undefined.
  void clear();
  /// Appends indices [n] and rows [n, width] of any floating type, which are cast.
  void append(const at::Tensor& indices, const at::Tensor& rows);

  std::int64_t count() const { return count_; }
  at::Tensor dense() const { return rows_.narrow(0, 0, dense_); }       ///< fp32 [V, width]
  at::Tensor indices() const { return indices_.narrow(0, 0, count_); }  ///< int64 [count]
  at::Tensor rows() const { return rows_.narrow(0, 0, count_); }        ///< fp32 [count, width]

 private:
  void reserve(std::int64_t count);

  std::int64_t dense_ = 0, count_ = 0;
  at::Tensor indices_, rows_;
};

}  // namespace scalemark
