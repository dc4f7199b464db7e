// Convolutions in training: against torch in float64 and beside torch's own in fp32, in shapes that
// fill neither panels nor chunks, and however the work is divided.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/kernels/kernels.hpp"

namespace scalemark::convolution_test {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

struct Case {
  std::int64_t batch, in, out, height, width;
  std::vector<std::int64_t> kernel, stride, padding;
};

struct Convolved {
  at::Tensor x, weight, bias;
};

Convolved random_tensors(const Case& c, at::ScalarType dtype = at::kFloat) {
  torch::manual_seed(1);
  return {at::randn({c.batch, c.in, c.height, c.width}).to(dtype).contiguous(kChannelsLast),
          at::randn({c.out, c.in, c.kernel[0], c.kernel[1]}).to(dtype).contiguous(kChannelsLast),
          at::randn({c.out}).to(dtype)};
}

at::Tensor wide(const at::Tensor& x) { return x.detach().to(at::kDouble); }

double error(const at::Tensor& found, const at::Tensor& exact) {
  return (wide(found) - exact).abs().max().item<double>();
}

/// A slope of the result, and the gradient of the weight that torch computes from it.
std::pair<at::Tensor, at::Tensor> torchs_gradient(const Case& c, const Convolved& t) {
  const at::Tensor weight = t.weight.detach().clone().set_requires_grad(true);
  const at::Tensor y = at::conv2d(t.x, weight, {}, c.stride, c.padding);
  torch::manual_seed(2);
  const at::Tensor dy = at::randn(y.sizes()).to(t.x.scalar_type()).contiguous(kChannelsLast);
  y.backward(dy);
  return {dy, weight.grad()};
}

class Convolution : public ::testing::TestWithParam<Case> {};

void takes_the_gradient_of_its_weight(const Case& c, at::ScalarType dtype) {
  const Convolved narrow = random_tensors(c, dtype);
  const auto [dy, plain] = torchs_gradient(c, narrow);
  const at::Tensor exact =
      torchs_gradient(c, {wide(narrow.x), wide(narrow.weight), wide(narrow.bias)}).second;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3, 8}) {
    at::set_num_threads(threads);
    const at::Tensor found =
        conv2d_weight_gradient(narrow.x, dy, narrow.weight, c.stride, c.padding);
    ASSERT_EQ(found.sizes(), narrow.weight.sizes());
    EXPECT_LT(error(found, exact),
              8 * error(plain, exact) + 1e-6 * exact.abs().max().item<double>())
        << threads;
    EXPECT_TRUE(
        at::equal(found, conv2d_weight_gradient(narrow.x, dy, narrow.weight, c.stride, c.padding)))
        << threads;
  }
  at::set_num_threads(before);
}

TEST_P(Convolution, TakesTheGradientOfItsWeight) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    takes_the_gradient_of_its_weight(GetParam(), dtype);
}

void takes_every_gradient(const Case& c, at::ScalarType dtype) {
  const auto gradients = [&](const Convolved& t, const auto& convolve) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : {t.x, t.weight, t.bias})
      leaves.push_back(leaf.detach().clone().set_requires_grad(true));
    const at::Tensor y = convolve(leaves[0], leaves[1], leaves[2], c.stride, c.padding);
    torch::manual_seed(2);
    y.backward(at::randn(y.sizes()).to(y.scalar_type()));
    for (at::Tensor& leaf : leaves) leaf = leaf.grad();
    leaves.push_back(y.detach());
    return leaves;
  };
  const auto torchs = [](const auto& x, const auto& weight, const auto& bias, const auto& stride,
                         const auto& padding) {
    return at::conv2d(x, weight, bias, stride, padding);
  };
  const Convolved narrow = random_tensors(c, dtype);
  const auto exact = gradients({wide(narrow.x), wide(narrow.weight), wide(narrow.bias)}, torchs);
  const auto plain = gradients(narrow, torchs), ours = gradients(narrow, conv2d_trained);
  for (std::size_t i = 0; i < exact.size(); ++i)
    EXPECT_LT(error(ours[i], exact[i]),
              8 * error(plain[i], exact[i]) + 1e-6 * exact[i].abs().max().item<double>())
        << i;
}

TEST_P(Convolution, TakesEveryGradient) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) takes_every_gradient(GetParam(), dtype);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolution,
                         ::testing::Values(Case{2, 64, 64, 16, 16, {3, 3}, {1, 1}, {1, 1}},
                                           Case{5, 40, 33, 7, 9, {3, 3}, {1, 1}, {1, 1}},
                                           Case{16, 256, 32, 7, 7, {3, 3}, {1, 1}, {1, 1}},
                                           Case{2, 64, 48, 17, 15, {1, 1}, {1, 1}, {0, 0}},
                                           Case{2, 32, 48, 17, 15, {1, 1}, {2, 2}, {0, 0}},
                                           Case{1, 16, 16, 9, 9, {1, 1}, {1, 1}, {1, 2}},
                                           Case{2, 3, 64, 33, 31, {7, 7}, {2, 2}, {3, 3}},
                                           Case{3, 32, 20, 15, 14, {3, 3}, {2, 2}, {1, 1}},
                                           Case{2, 24, 17, 12, 11, {1, 7}, {1, 1}, {0, 3}},
                                           Case{2, 24, 17, 12, 11, {5, 2}, {3, 1}, {1, 0}},
                                           Case{1, 512, 512, 4, 4, {1, 1}, {1, 1}, {0, 0}},
                                           Case{2, 256, 264, 8, 7, {1, 1}, {2, 2}, {0, 0}},
                                           Case{1, 16, 16, 2, 2, {5, 5}, {1, 1}, {4, 4}}));

TEST(Convolution, OfPixelsIsAMatrixProduct) {
  const auto expect_close = [](const at::Tensor& found, const at::Tensor& exact) {
    ASSERT_EQ(found.sizes(), exact.sizes());
    EXPECT_TRUE(found.is_contiguous(kChannelsLast));
    EXPECT_LT(error(found, exact), 1e-5 * exact.abs().max().item<double>());
  };
  const int before = at::get_num_threads();
  for (const Case& c :
       {Case{2, 64, 48, 17, 15, {1, 1}, {1, 1}, {0, 0}},
        Case{1, 512, 512, 4, 4, {1, 1}, {1, 1}, {0, 0}},
        Case{3, 5, 7, 1, 2, {1, 1}, {1, 1}, {0, 0}}, Case{2, 33, 48, 9, 8, {1, 1}, {2, 2}, {0, 0}},
        Case{2, 16, 24, 7, 11, {1, 1}, {2, 3}, {0, 0}}}) {
    const auto [x, weight, bias] = random_tensors(c);
    const Convolved exact{wide(x), wide(weight), wide(bias)};
    const at::Tensor dy = torchs_gradient(c, {x, weight, bias}).first;
    const auto [dx, dweight, none] = at::convolution_backward(
        wide(dy), exact.x, exact.weight, c10::nullopt, c.stride, c.padding, {1, 1},
        /*transposed=*/false, {0, 0}, /*groups=*/1, {true, true, false});
    for (const int threads : {1, 2, 3, 8}) {
      at::set_num_threads(threads);
      expect_close(pixel_conv2d(x, weight, bias, c.stride),
                   at::conv2d(exact.x, exact.weight, exact.bias, c.stride));
      expect_close(pixel_conv2d(x, weight, {}, c.stride),
                   at::conv2d(exact.x, exact.weight, {}, c.stride));
      expect_close(pixel_input_gradient(x, dy, weight, c.stride), dx);
      expect_close(pixel_weight_gradient(x, dy, weight, c.stride, c.padding), dweight);
    }
  }
  at::set_num_threads(before);
}

TEST(Convolution, IsOfPixelsWithoutNeighboursAndPadding) {
  const at::Tensor x = at::randn({2, 256, 8, 8}).contiguous(kChannelsLast);
  const at::Tensor weight = at::randn({256, 256, 1, 1});
  EXPECT_FALSE(suits_pixel_products(x, weight, {2, 2}, {0, 0})) << "copied for few multiply-adds";
  const at::Tensor wide = at::randn({1024, 256, 1, 1}), wider = at::randn({2048, 1024, 1, 1});
  EXPECT_FALSE(suits_pixel_products(x, wide, {1, 2}, {0, 0}));
  EXPECT_EQ(suits_pixel_products(at::randn({1, 1024, 8, 8}).contiguous(kChannelsLast), wider,
                                 {2, 2}, {0, 0}),
            suits_pixel_products(x, weight, {1, 1}, {0, 0}));
  EXPECT_FALSE(suits_pixel_products(x, weight, {1, 1}, {1, 0}));
  EXPECT_FALSE(suits_pixel_products(x, at::randn({256, 256, 3, 3}), {1, 1}, {0, 0}));
  EXPECT_FALSE(suits_pixel_products(x, at::randn({64, 256, 1, 1}), {1, 1}, {0, 0})) << "few";
  EXPECT_FALSE(suits_pixel_products(x.contiguous(), weight, {1, 1}, {0, 0}));
}

TEST(Convolution, IsOfPixelsInBf16WhereRowsAreShort) {
  const auto suits = [](std::int64_t width, std::int64_t taps, std::int64_t stride,
                        std::int64_t padding = 0) {
    const at::Tensor x = at::empty({4, 256, 32, width}, at::kBFloat16).contiguous(kChannelsLast);
    const at::Tensor weight = at::empty({256, 256, taps, taps}, at::kBFloat16);
    const std::vector<std::int64_t> strides(2, stride), paddings(2, padding);
    return std::pair{suits_pixel_products(x, weight, strides, paddings),
                     suits_weight_gradient(x, weight, strides, paddings)};
  };
  using Both = std::pair<bool, bool>;  // all of it; the gradient of its weight
  const bool with = has_avx512(), tiles = has_tiles();
  EXPECT_EQ(suits(8, 1, 1), (Both{with, with}));
  EXPECT_EQ(suits(15, 1, 2), (Both{with, with}));
  EXPECT_EQ(suits(32, 1, 1), (Both{false, with}));
  EXPECT_EQ(suits(31, 1, 2), (Both{tiles, with}));
  EXPECT_EQ(suits(34, 1, 2), (Both{tiles, tiles}));
  EXPECT_EQ(suits(8, 3, 1, 1), (Both{false, with}));
  EXPECT_EQ(suits(16, 3, 2, 1), (Both{false, with}));
  EXPECT_EQ(suits(9, 3, 1, 1), (Both{false, tiles}));
  EXPECT_EQ(suits(28, 3, 2, 1), (Both{false, tiles}));
  for (const Both& left : {suits(15, 3, 1, 1), suits(30, 3, 2, 1), suits(16, 1, 1, 1)})
    EXPECT_EQ(left, (Both{false, false}));
}

TEST(Convolution, OfFixedPixelsIsThatOfFloat64) {
  if (!has_tiles()) GTEST_SKIP() << "no AMX";
  torch::manual_seed(7);
  const auto images = [](std::int64_t channels, std::int64_t size) {
    return at::randn({8, channels, size, size}, at::kBFloat16).contiguous(kChannelsLast);
  };
  const std::vector<std::int64_t> none(2, 0);
  for (const auto& [size, step] : {std::pair{7, 1}, std::pair{14, 2}, std::pair{15, 2}}) {
    const std::vector<std::int64_t> stride(2, step);
    const at::Tensor x = images(96, size), weight = at::randn({72, 96, 1, 1}, at::kBFloat16) / 10,
                     bias = at::randn({72}, at::kBFloat16);
    const auto fixed = own_operators()->fixed_convolution(x, weight, stride, none);
    ASSERT_TRUE(fixed) << size;
    const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
    const at::Tensor exact = at::conv2d(wide(x), wide(weight), wide(bias), stride);
    const auto expect_close = [&](const at::Tensor& found, const at::Tensor& expected) {
      ASSERT_EQ(found.sizes(), expected.sizes());
      EXPECT_TRUE(found.is_contiguous(kChannelsLast));
      EXPECT_LT((wide(found) - expected).abs().max().item<double>(), 0.03);
    };
    expect_close((*fixed)(x, bias, /*relu=*/false, {}), exact);
    expect_close((*fixed)(x, bias, /*relu=*/true, {}), exact.relu());
    const at::Tensor residual = images(72, exact.size(2)), before = wide(residual);
    expect_close((*fixed)(x, bias, /*relu=*/true, residual), (exact + before).relu());
    EXPECT_FALSE(own_operators()->fixed_convolution(x.narrow(0, 0, 1), weight, stride, none))
        << "few pixels";
  }
}

TEST(Convolution, SuitsOneGroupOfFp32InChannelsLastMemory) {
  const auto suits = [](const at::Tensor& x, const at::Tensor& weight, std::int64_t padding = 0) {
    return suits_weight_gradient(x, weight, std::vector<std::int64_t>(2, 1),
                                 std::vector<std::int64_t>(2, padding));
  };
  const at::Tensor x = at::randn({2, 256, 32, 32}).contiguous(kChannelsLast);
  const at::Tensor weight = at::randn({256, 256, 1, 1});
  EXPECT_EQ(suits(x, weight), !has_avx512() || suits_pixel_products(x, weight, {1, 1}, {0, 0}));
  EXPECT_FALSE(suits(x.contiguous(), weight));
  EXPECT_FALSE(suits(x, at::randn({256, 32, 1, 1}))) << "groups";
  EXPECT_FALSE(suits(x.slice(2, 0, 1).slice(3, 0, 8), weight)) << "little work";
  const at::Tensor narrow = at::randn({2, 64, 32, 32}).contiguous(kChannelsLast);
  EXPECT_FALSE(suits(narrow, at::randn({256, 64, 1, 1}))) << "copied for few multiply-adds";
  EXPECT_TRUE(suits(narrow, at::randn({64, 64, 3, 3}), 1)) << "by Winograd's filters";
}

}  // namespace
}  // namespace scalemark::convolution_test
