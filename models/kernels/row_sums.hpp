// Rows of embedding gradients added to the dense gradient on the CPU, by threads that each own rows
// of the table.
#pragma once

#include <ATen/core/Tensor.h>

namespace scalemark {

/// gradient[indices[i]] += rows[i], i ascending. gradient fp32 [V, width], indices int64 [n], rows
/// fp32 [n, width], all contiguous and in CPU memory. The order of a row's sums is that of the
/// indices whatever the threads, so that ranks which add the same rows get the same bits.
void add_rows_in_order(at::Tensor gradient, const at::Tensor& indices, const at::Tensor& rows);

}  // namespace scalemark
