// GELU with its gradient in one pass: against float64, at the ends, and in a layer.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "models/kernels/kernels.hpp"
#include "models/layers.hpp"
#include "tests/models/gradient_taker.hpp"

namespace scalemark::gelu_test {
namespace {

class Gelu : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(Gelu, AndItsGradientAreThoseOfFloat64) {
  torch::manual_seed(1);
  const at::Tensor x = (at::randn({37, 1001}) * 3).to(GetParam());
  const at::Tensor exact = x.to(at::kDouble), dy = at::randn({37, 1001}).to(GetParam());
  const at::Tensor y = at::gelu(exact);
  const at::Tensor right = at::gelu_backward(dy.to(at::kDouble), exact);
  const double rounding = GetParam() == at::kFloat ? 1e-6 : 0x1p-8;
  const auto expect_close = [&](const at::Tensor& found, const at::Tensor& wanted) {
    EXPECT_EQ(found.scalar_type(), GetParam());
    const at::Tensor apart = (found.to(at::kDouble) - wanted).abs();
    EXPECT_TRUE((apart <= rounding * wanted.abs() + 1e-6).all().item<bool>()) << apart.max();
  };
  expect_close(gelu_fused(x), y);
  at::Tensor dx = dy.clone();
  const at::Tensor anew = gelu_and_gradient(x, dx);
  EXPECT_TRUE(at::equal(anew, gelu_fused(x))) << "the same on both ways";
  expect_close(dx, right);
}
INSTANTIATE_TEST_SUITE_P(Types, Gelu, ::testing::Values(at::kFloat, at::kBFloat16));

TEST(Gelu, PassesWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  const at::Tensor x = at::tensor({std::nanf(""), infinity, 100.f, -100.f, 0.f});
  at::Tensor dx = at::ones({5});
  const at::Tensor y = gelu_and_gradient(x, dx);
  EXPECT_TRUE(std::isnan(y[0].item<float>()) && std::isnan(dx[0].item<float>()));
  EXPECT_EQ(y[1].item<float>(), infinity);
  EXPECT_EQ(y[2].item<float>(), 100);
  EXPECT_EQ(dx[2].item<float>(), 1);
  EXPECT_NEAR(y[3].item<float>(), 0, 1e-30);
  EXPECT_NEAR(dx[3].item<float>(), 0, 1e-30);
  EXPECT_EQ(y[4].item<float>(), 0);
  EXPECT_NEAR(dx[4].item<float>(), 0.5, 1e-7);
}

TEST(Gelu, IsNotKeptByALayerThatTakesIt) {
  const auto gradients = [](const OperatorSet& operators, bool of_gelu) {
    torch::manual_seed(2);
    const auto gate = std::make_shared<GateHolder>();
    gate->gate = std::make_shared<testing::GradientTaker>();
    gate->operators = &operators;
    Linear layer(gate, 24, 40);
    const at::Tensor x = at::randn({2, 7, 24}).set_requires_grad(true);
    const at::Tensor hidden = x * 2;
    const at::Tensor y = of_gelu ? layer.forward_of_gelu(hidden) : layer.forward(at::gelu(hidden));
    y.square().sum().backward();
    return std::vector{x.grad(), layer.parameters()[0].grad(), layer.parameters()[1].grad()};
  };
  const auto plain = gradients(torch_operators(), false);
  for (const bool own : {false, true}) {
    const auto found = gradients(own ? *own_operators() : torch_operators(), true);
    for (std::size_t i = 0; i < plain.size(); ++i)
      EXPECT_TRUE(at::allclose(found[i], plain[i], 1e-4, 1e-5)) << own << i;
  }
}

}  // namespace
}  // namespace scalemark::gelu_test
