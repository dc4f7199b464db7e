// GELU and SwiGLU with their gradients in one pass: against float64, at the ends, and in a layer.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "models/kernels/kernels.hpp"
#include "models/layers.hpp"
#include "tests/models/gradient_taker.hpp"

namespace scalemark::activations_test {
namespace {

constexpr std::array kActivations{Activation::gelu, Activation::gelu_tanh, Activation::swiglu};

class Fused : public ::testing::TestWithParam<std::tuple<at::ScalarType, Activation>> {};

TEST_P(Fused, AndItsGradientAreThoseOfFloat64) {
  const auto [type, activation] = GetParam();
  torch::manual_seed(1);
  const std::int64_t columns = 1001;
  const at::Tensor x = (at::randn({37, halves(activation) ? 2 * columns : columns}) * 3).to(type);
  const at::Tensor dy = at::randn({37, columns}).to(type);
  const at::Tensor exact = x.to(at::kDouble).set_requires_grad(true);
  const at::Tensor y = activated_anew(exact, activation);
  y.backward(dy.to(at::kDouble));
  const double rounding = type == at::kFloat ? 1e-6 : 0x1p-8;
  const auto expect_close = [&](const at::Tensor& found, const at::Tensor& wanted) {
    EXPECT_EQ(found.scalar_type(), type);
    const at::Tensor apart = (found.to(at::kDouble) - wanted).abs();
    EXPECT_TRUE((apart <= rounding * wanted.abs() + 3e-6).all().item<bool>()) << apart.max();
  };
  expect_close(activation_fused(x, activation), y.detach());
  at::Tensor dx = dy.clone();
  const at::Tensor anew = activation_and_gradient(x, dx, activation);
  EXPECT_TRUE(at::equal(anew, activation_fused(x, activation))) << "the same on both ways";
  expect_close(dx, exact.grad());
}
INSTANTIATE_TEST_SUITE_P(Types, Fused,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::ValuesIn(kActivations)));

TEST(Fused, PassesWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
    const at::Tensor x = at::tensor({std::nanf(""), infinity, 100.f, -100.f, 0.f});
    at::Tensor dx = at::ones({5});
    const at::Tensor y = activation_and_gradient(x, dx, activation);
    EXPECT_TRUE(std::isnan(y[0].item<float>()) && std::isnan(dx[0].item<float>()));
    EXPECT_EQ(y[1].item<float>(), infinity);
    EXPECT_EQ(y[2].item<float>(), 100);
    EXPECT_EQ(dx[2].item<float>(), 1);
    EXPECT_NEAR(y[3].item<float>(), 0, 1e-30);
    EXPECT_NEAR(dx[3].item<float>(), 0, 1e-30);
    EXPECT_EQ(y[4].item<float>(), 0);
    EXPECT_NEAR(dx[4].item<float>(), 0.5, 1e-7);
  }
  at::Tensor dx = at::ones({1, 3});  // gates NaN, 100 and -100, factors 1, 2 and 3
  const at::Tensor x = at::tensor({std::nanf(""), 100.f, -100.f, 1.f, 2.f, 3.f}).view({1, 6});
  const at::Tensor y = activation_and_gradient(x, dx, Activation::swiglu);
  EXPECT_TRUE(std::isnan(y[0][0].item<float>()) && std::isnan(dx[0][0].item<float>()));
  EXPECT_EQ(y[0][1].item<float>(), 200);
  EXPECT_NEAR(y[0][2].item<float>(), 0, 1e-30);
  EXPECT_EQ(dx[0][1].item<float>(), 2);
  EXPECT_EQ(dx[0][4].item<float>(), 100);
}

TEST(Fused, IsNotKeptByALayerThatTakesIt) {
  const auto gradients = [](const OperatorSet& operators, Activation activation, bool taken) {
    torch::manual_seed(2);
    const auto gate = std::make_shared<GateHolder>();
    gate->gate = std::make_shared<testing::GradientTaker>();
    gate->operators = &operators;
    Linear layer(gate, 24, 40);
    const at::Tensor x = at::randn({2, 7, halves(activation) ? 48 : 24}).set_requires_grad(true);
    const at::Tensor hidden = x * 2;
    const at::Tensor y = taken ? layer.forward_of(hidden, activation)
                               : layer.forward(activated_anew(hidden, activation));
    y.square().sum().backward();
    return std::vector{x.grad(), layer.parameters()[0].grad(), layer.parameters()[1].grad()};
  };
  for (const Activation activation : kActivations) {
    const auto plain = gradients(torch_operators(), activation, false);
    for (const bool own : {false, true}) {
      const auto found = gradients(own ? *own_operators() : torch_operators(), activation, true);
      for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_TRUE(at::allclose(found[i], plain[i], 1e-4, 1e-5)) << own << i;
    }
  }
}

}  // namespace
}  // namespace scalemark::activations_test
