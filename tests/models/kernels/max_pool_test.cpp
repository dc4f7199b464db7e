// Maximum pooling against torch's, both ways, and what does not suit it.
#include <gtest/gtest.h>

#include "models/kernels/kernels.hpp"

namespace scalemark::max_pool_test {
namespace {

constexpr auto kLayout = at::MemoryFormat::ChannelsLast;

struct Case {
  std::int64_t images, channels, height, width;
  PoolWindow window;
  at::ScalarType dtype;
};

at::Tensor torchs(const at::Tensor& x, const PoolWindow& window) {
  const auto both = [](std::int64_t n) { return std::vector<std::int64_t>{n, n}; };
  return at::max_pool2d(x, both(window.size), both(window.stride), both(window.padding));
}

class MaxPool : public ::testing::TestWithParam<Case> {};

TEST_P(MaxPool, IsThatOfTorch) {
  const Case c = GetParam();
  torch::manual_seed(2);
  const at::Tensor drawn =
      at::randn({c.images, c.channels, c.height, c.width}).to(c.dtype).contiguous(kLayout);
  ASSERT_TRUE(suits_max_pool(drawn, c.window));
  const at::Tensor x = drawn.clone().set_requires_grad(true);
  const at::Tensor ours = max_pool_fused(x, c.window);
  const at::Tensor dy = at::randn_like(ours);
  const at::Tensor dx = torch::autograd::grad({ours}, {x}, {dy})[0];
  EXPECT_TRUE(at::equal(max_pool_fused(drawn, c.window), ours)) << "without a gradient";
  // Ties go to the first pixel in both; sums of gradients are exact to a rounding of the dtype.
  const at::Tensor exact = drawn.to(at::kDouble).set_requires_grad(true);
  const at::Tensor wanted = torchs(exact, c.window);
  EXPECT_TRUE(at::equal(ours.to(at::kDouble), wanted));
  const at::Tensor right = torch::autograd::grad({wanted}, {exact}, {dy.to(at::kDouble)})[0];
  const double rounding = c.dtype == at::kFloat ? 1e-6 : 0x1p-8;
  EXPECT_TRUE(at::allclose(dx.to(at::kDouble), right, rounding, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Shapes, MaxPool,
                         ::testing::Values(Case{2, 64, 12, 14, {3, 2, 1}, at::kFloat},
                                           Case{3, 33, 11, 9, {3, 2, 1}, at::kBFloat16},
                                           Case{1, 40, 13, 13, {3, 2, 0}, at::kFloat},
                                           Case{2, 17, 8, 7, {2, 2, 0}, at::kBFloat16},
                                           Case{1, 16, 9, 10, {5, 1, 2}, at::kFloat},
                                           Case{1, 16, 9, 10, {2, 3, 1}, at::kFloat},
                                           Case{1, 1, 15, 15, {15, 1, 7}, at::kFloat}));

TEST(MaxPool, PassesWhatIsNoNumber) {
  const at::Tensor x = at::zeros({1, 32, 6, 6}).contiguous(kLayout);
  x[0][5][2][2] = NAN;
  x.select(1, 7).fill_(-INFINITY);
  const PoolWindow window{3, 2, 1};
  EXPECT_TRUE(at::allclose(max_pool_fused(x, window), torchs(x, window), 0, 0, true));
}

TEST(MaxPool, LeavesOtherInputsToTorch) {
  const PoolWindow window{3, 2, 1};
  const at::Tensor x = at::zeros({1, 32, 6, 6}).contiguous(kLayout);
  EXPECT_TRUE(suits_max_pool(x, window));
  EXPECT_FALSE(suits_max_pool(at::zeros({1, 32, 6, 6}), window));
  EXPECT_FALSE(suits_max_pool(x.to(at::kDouble), window));
  EXPECT_FALSE(suits_max_pool(x[0], window));
  EXPECT_FALSE(suits_max_pool(x, {16, 1, 0}));
  EXPECT_FALSE(suits_max_pool(x, {3, 2, 2}));
  EXPECT_FALSE(suits_max_pool(x, {7, 1, 0}));
}

}  // namespace
}  // namespace scalemark::max_pool_test
