// Rows of embedding gradients: collecting them.
#include "train/row_gradients.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace scalemark::row_gradients_test {
namespace {

TEST(RowBuffer, HoldsWhatWasAppendedBehindTheDenseRows) {
  RowBuffer buffer(3, 2, at::TensorOptions(at::kFloat));
  for (int step = 0; step < 2; ++step) {
    buffer.clear();
    EXPECT_EQ(buffer.count(), 2);
    buffer.dense().fill_(7);
    buffer.append(at::tensor({1, 0, 1}, at::kLong), at::full({3, 3}, 2, at::kBFloat16));
    buffer.append(at::tensor({1}, at::kLong), at::full({1, 3}, 5.f));  // grows
    EXPECT_EQ(buffer.count(), 6);
    EXPECT_TRUE(at::equal(buffer.indices(), at::tensor({0, 1, 1, 0, 1, 1}, at::kLong)));
    EXPECT_EQ(buffer.rows().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(buffer.rows().select(1, 2), at::tensor({7.f, 7.f, 2.f, 2.f, 2.f, 5.f})));
  }
  const void* const memory = buffer.rows().data_ptr();
  buffer.clear();
  buffer.append(at::zeros({4}, at::kLong), at::zeros({4, 3}));
  EXPECT_EQ(buffer.rows().data_ptr(), memory);  // of steps before
}

}  // namespace
}  // namespace scalemark::row_gradients_test
