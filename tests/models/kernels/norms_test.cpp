// Normalisations and rotated heads against float64, and the same for every number of threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/kernels/kernels.hpp"
#include "models/kernels/next_factors.hpp"

namespace scalemark::norms_test {
namespace {

double rounding_of(at::ScalarType type) { return type == at::kFloat ? 2e-6 : 0x1p-7; }

void expect_close(const at::Tensor& found, const at::Tensor& wanted, double rounding) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  const double apart = (found.to(at::kDouble) - wanted).abs().max().item<double>();
  EXPECT_LE(apart, rounding * wanted.abs().max().item<double>());
}

class OfType : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(OfType, RmsNormAndItsGradientsAreThoseOfFloat64) {
  torch::manual_seed(1);
  for (const std::int64_t width : {1, 31, 32, 128, 1001}) {  // rows of more than one block
    const at::Tensor x = at::randn({3, 47, width}).to(GetParam()).set_requires_grad(true);
    const at::Tensor weight = (1 + 0.1 * at::randn({width})).set_requires_grad(true);
    const at::Tensor dy = at::randn({3, 47, width}).to(GetParam());
    const auto exact = [](const at::Tensor& like) {
      return like.detach().to(at::kDouble).set_requires_grad(true);
    };
    const at::Tensor wide = exact(x), wide_weight = exact(weight);
    const at::Tensor wanted = torch_operators().rms_norm(wide, wide_weight, 1e-5);
    wanted.backward(dy.to(at::kDouble));
    const at::Tensor found = own_operators()->rms_norm(x, weight, 1e-5);
    found.backward(dy);
    EXPECT_EQ(found.scalar_type(), GetParam());
    expect_close(found.detach(), wanted.detach(), rounding_of(GetParam()));
    expect_close(x.grad(), wide.grad(), rounding_of(GetParam()));
    expect_close(weight.grad(), wide_weight.grad(), 1e-5);
  }
}

TEST_P(OfType, DividedHeadsAndTheirGradientAreThoseOfFloat64) {
  torch::manual_seed(2);
  const std::int64_t length = 9, key_heads = 2;
  const at::Tensor x = at::randn({2, length, 4 + 2 * key_heads, 6}).to(GetParam());
  const at::Tensor angles = at::randn({length, 3});
  const Rotation rotation{at::cos(angles), at::sin(angles)};
  const Rotation wide{rotation.cosines.to(at::kDouble), rotation.sines.to(at::kDouble)};
  const auto heads_and_gradient = [&](const OperatorSet& operators, const at::Tensor& input,
                                      const Rotation& by) {
    const at::Tensor leaf = input.detach().clone().set_requires_grad(true);
    const AttentionHeads heads = operators.divided_heads(leaf, key_heads, by);
    EXPECT_EQ(heads.queries.sizes().vec(), (std::vector<std::int64_t>{2, 4, length, 6}));
    EXPECT_EQ(heads.values.sizes().vec(), (std::vector<std::int64_t>{2, 2, length, 6}));
    (heads.queries.sin().sum() + 2 * heads.keys.cos().sum() + 3 * heads.values.sin().sum())
        .backward();
    return std::vector{heads.queries.detach(), heads.keys.detach(), heads.values.detach(),
                       leaf.grad()};
  };
  const auto wanted = heads_and_gradient(torch_operators(), x.to(at::kDouble), wide);
  const auto found = heads_and_gradient(*own_operators(), x, rotation);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    expect_close(found[i], wanted[i], rounding_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Types, OfType, ::testing::Values(at::kFloat, at::kBFloat16));

/// Layer normalisation of x + factors branch, and its gradients, in the types of the inputs.
std::vector<at::Tensor> norm_and_gradients(const std::vector<at::Tensor>& inputs,
                                           const at::Tensor& upstream, const auto& norm) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().set_requires_grad(true));
  const at::Tensor y = norm(leaves);
  y.backward(upstream);
  std::vector<at::Tensor> found{y.detach()};
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

TEST_P(OfType, NormOfASumAndItsGradientsAreThoseOfFloat64) {
  torch::manual_seed(4);
  for (const std::int64_t width : {31, 64, 1001})
    for (const double dropped : {0., 0.25}) {
      const auto random = [&] { return at::randn({3, 47, width}).to(GetParam()); };
      const at::Tensor x = random() + 3, branch = random(), dy = random();
      const at::Tensor weight = 1 + 0.1 * at::randn({width}), bias = at::randn({width});
      torch::manual_seed(5);
      const at::Tensor factors = next_factors(x.sizes(), dropped);
      std::vector<at::Tensor> wide;
      for (const at::Tensor& each : {x, branch, weight, bias}) wide.push_back(each.to(at::kDouble));
      const auto wanted =
          norm_and_gradients(wide, dy.to(at::kDouble), [&](const std::vector<at::Tensor>& all) {
            // The sum is rounded to the type, as everything between two operators.
            const at::Tensor sum = all[0] + factors * all[1];
            return at::layer_norm(sum + (sum.to(GetParam()).to(at::kDouble) - sum).detach(),
                                  {width}, all[2], all[3], 1e-5);
          });
      const auto found = norm_and_gradients({x, branch, weight, bias}, dy, [&](const auto& all) {
        torch::manual_seed(5);
        EXPECT_TRUE(suits_norm_of_sum(all[0], all[1], all[2], all[3]));
        return own_operators()->norm_of_sum(all[0], all[1], dropped, all[2], all[3], 1e-5);
      });
      for (std::size_t i = 0; i < found.size(); ++i) {
        SCOPED_TRACE(i);
        expect_close(found[i], wanted[i], i < 3 ? 2 * rounding_of(GetParam()) : 1e-5);
      }
      const at::Tensor alone = own_operators()->norm_of_sum(x, {}, 0.5, weight, bias, 1e-5);
      expect_close(alone, at::layer_norm(wide[0], {width}, wide[2], wide[3], 1e-5),
                   rounding_of(GetParam()));
    }
}

TEST(RmsNorm, IsTheSameForEveryNumberOfThreads) {
  const auto gradients = [](int threads) {
    torch::manual_seed(3);
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const at::Tensor x = at::randn({1000, 64}).set_requires_grad(true);
    const at::Tensor weight = at::ones({64}).set_requires_grad(true);
    rms_norm_fused(x, weight, 1e-5).square().sum().backward();
    at::set_num_threads(before);
    return std::pair(x.grad(), weight.grad());
  };
  const auto [dx, dweight] = gradients(1);
  const auto [dx_of_three, dweight_of_three] = gradients(3);
  EXPECT_TRUE(at::equal(dx, dx_of_three));
  EXPECT_TRUE(at::equal(dweight, dweight_of_three));
}

TEST(DividedHeads, HaveTheLengthsThatTheyHad) {
  const at::Tensor angles = at::randn({5, 4});
  const at::Tensor x = at::randn({1, 5, 3, 8});
  const AttentionHeads heads = divided_heads_fused(x, 1, {at::cos(angles), at::sin(angles)});
  const auto of_x = [&](std::int64_t head) { return x.narrow(2, head, 1).transpose(1, 2); };
  EXPECT_TRUE(at::allclose(heads.queries.norm(2, -1), of_x(0).norm(2, -1)));
  EXPECT_TRUE(at::equal(heads.values, of_x(2)));
}

}  // namespace
}  // namespace scalemark::norms_test
