// Rows of embedding gradients: collecting them, adding them up, and whose bits the sums are.
#include "train/row_gradients.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace scalemark::row_gradients_test {
namespace {

at::Tensor some_indices(std::int64_t count, std::int64_t rows) {
  return at::randint(rows, {count}, at::kLong);
}

TEST(AddRows, IsTheSumOfAllRowsWithTheSameIndex) {
  torch::manual_seed(1);
  for (const std::int64_t width : {1, 8, 13, 128}) {
    const at::Tensor indices = some_indices(500, 37), rows = at::randn({500, width});
    const at::Tensor before = at::randn({37, width}), found = before.clone();
    add_rows(found, indices, rows);
    EXPECT_TRUE(at::allclose(found.to(at::kDouble),
                             before.to(at::kDouble).index_add(0, indices, rows.to(at::kDouble)),
                             1e-5, 1e-5))
        << width;
  }
}

TEST(AddRows, DoesNotDependOnTheThreads) {
  torch::manual_seed(2);
  const at::Tensor indices = some_indices(3000, 1000), rows = at::randn({3000, 64});
  const int before = at::get_num_threads();
  std::vector<at::Tensor> sums;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    sums.push_back(at::zeros({1000, 64}));
    add_rows(sums.back(), indices, rows);
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(sums[0], sums[1]));
}

TEST(AddRows, AddsInTheOrderOfTheIndices) {
  // 1e8 + 1 - 1e8 is 0 in fp32 from the left, and 1 in any order that begins with the large ones.
  at::Tensor gradient = at::zeros({2, 1});
  add_rows(gradient, at::tensor({1, 1, 1}, at::kLong), at::tensor({1e8f, 1.f, -1e8f}).view({3, 1}));
  EXPECT_EQ(gradient[1].item<float>(), 0);
  gradient.zero_();
  add_rows(gradient, at::tensor({1, 1, 1}, at::kLong), at::tensor({1e8f, -1e8f, 1.f}).view({3, 1}));
  EXPECT_EQ(gradient[1].item<float>(), 1);
}

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
