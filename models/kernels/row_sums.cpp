// See row_sums.hpp.
#include "models/kernels/row_sums.hpp"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <vector>

namespace scalemark {
namespace {

/// One thread owns at least this many rows of a table.
constexpr std::int64_t kRowsPerTask = 64;

void add_row(const float* __restrict from, float* __restrict to, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;  // the compiler can add these at once
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) to[i + lane] += from[i + lane];
  for (; i < count; ++i) to[i] += from[i];
}

}  // namespace

void add_rows_in_order(at::Tensor gradient, const at::Tensor& indices, const at::Tensor& rows) {
  RECORD_FUNCTION("scalemark::add_rows", std::vector<c10::IValue>({gradient, indices, rows}));
  const std::int64_t width = gradient.size(1), count = indices.numel();
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  const float* from = rows.const_data_ptr<float>();
  float* to = gradient.mutable_data_ptr<float>();
  // A thread owns rows of the table, and looks for them in all of the indices.
  at::parallel_for(0, gradient.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i)
      if (index[i] >= begin && index[i] < end)
        add_row(from + i * width, to + index[i] * width, width);
  });
}

}  // namespace scalemark
