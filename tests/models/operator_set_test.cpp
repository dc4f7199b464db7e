// What both sets of operators promise of the training beside the layers: sums of rows and norms.
#include "models/operator_set.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

namespace scalemark::operator_set_test {
namespace {

std::vector<const OperatorSet*> both_sets() {
  std::vector<const OperatorSet*> sets{&torch_operators()};
  if (own_operators()) sets.push_back(own_operators());
  return sets;
}

at::Tensor some_indices(std::int64_t count, std::int64_t rows) {
  return at::randint(rows, {count}, at::kLong);
}

class AddRows : public ::testing::TestWithParam<const OperatorSet*> {
 protected:
  static void add_rows(at::Tensor gradient, const at::Tensor& indices, const at::Tensor& rows) {
    GetParam()->add_rows(std::move(gradient), indices, rows);
  }
};

TEST_P(AddRows, IsTheSumOfAllRowsWithTheSameIndex) {
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

TEST_P(AddRows, DoesNotDependOnTheThreads) {
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

TEST_P(AddRows, AddsInTheOrderOfTheIndices) {
  // 1e8 + 1 - 1e8 is 0 in fp32 from the left, and 1 in any order that begins with the large ones.
  at::Tensor gradient = at::zeros({2, 1});
  add_rows(gradient, at::tensor({1, 1, 1}, at::kLong), at::tensor({1e8f, 1.f, -1e8f}).view({3, 1}));
  EXPECT_EQ(gradient[1].item<float>(), 0);
  gradient.zero_();
  add_rows(gradient, at::tensor({1, 1, 1}, at::kLong), at::tensor({1e8f, -1e8f, 1.f}).view({3, 1}));
  EXPECT_EQ(gradient[1].item<float>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Sets, AddRows, ::testing::ValuesIn(both_sets()));

TEST(OperatorSets, AreLibTorchsWhereThereAreNoOthers) {
  EXPECT_EQ(&standard_operators(), own_operators() ? own_operators() : &torch_operators());
  EXPECT_NE(&torch_operators(), own_operators());
}

}  // namespace
}  // namespace scalemark::operator_set_test
