// Attention whose gradient is made of whole products: as near to float64 as LibTorch's own in the
// same type.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/kernels/kernels.hpp"

namespace scalemark::attention_test {
namespace {

struct Case {
  const char* name;
  std::int64_t heads, key_heads, length;
  bool causal;
};

class ByProducts : public ::testing::TestWithParam<Case> {};

TEST_P(ByProducts, IsAsNearToFloat64AsLibTorch) {
  const Case& one = GetParam();
  torch::manual_seed(1);
  const auto random = [&](std::int64_t heads) {
    return at::randn({3, heads, one.length, 16}).to(at::kBFloat16);
  };
  const std::array inputs{random(one.heads), random(one.key_heads), random(one.key_heads)};
  const at::Tensor upstream = random(one.heads);
  const auto result = [&](const OperatorSet& operators, at::ScalarType type) {
    std::array<at::Tensor, 3> leaves;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      leaves[i] = inputs[i].to(type).set_requires_grad(true);
    const AttentionInputs all{leaves[0], leaves[1], leaves[2], one.causal};
    const at::Tensor y = operators.attention(all, 0);
    y.backward(upstream.to(type));
    std::vector<at::Tensor> found{y.detach()};
    for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
    return found;
  };
  ASSERT_TRUE(suits_attention_by_products({inputs[0], inputs[1], inputs[2], one.causal}, 0));
  const auto exact = result(torch_operators(), at::kDouble);
  const auto usual = result(torch_operators(), at::kBFloat16);
  const auto found = result(*own_operators(), at::kBFloat16);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto error = [&](const at::Tensor& x) {
      return (x.to(at::kDouble) - exact[i]).norm().item<double>();
    };
    EXPECT_EQ(found[i].sizes(), exact[i].sizes());
    EXPECT_LT(error(found[i]), 1.5 * error(usual[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ByProducts,
                         ::testing::Values(Case{"causal", 4, 4, 33, true},
                                           Case{"open", 4, 4, 33, false},
                                           Case{"grouped", 6, 2, 17, true},
                                           Case{"of_one_key", 4, 1, 70, true}),
                         [](const auto& info) { return info.param.name; });

TEST(ByProducts, AreOfShortSequencesWithoutDropoutOrMask) {
  const at::Tensor x = at::zeros({1, 1, 8, 4}).to(at::kBFloat16);
  EXPECT_TRUE(suits_attention_by_products({x, x, x, true}, 0));
  EXPECT_FALSE(suits_attention_by_products({x, x, x, true}, 0.1));
  EXPECT_FALSE(suits_attention_by_products({x, x, x, false, at::zeros({1, 1, 1, 8})}, 0));
  const at::Tensor wide = x.to(at::kFloat), others = at::zeros({1, 1, 9, 4}).to(at::kBFloat16);
  EXPECT_FALSE(suits_attention_by_products({wide, wide, wide, true}, 0));
  EXPECT_FALSE(suits_attention_by_products({x, others, others, false}, 0));
  const at::Tensor many = at::zeros({1}).to(at::kBFloat16).expand({1, 2, 8192, 4});
  EXPECT_FALSE(suits_attention_by_products({many, many, many, true}, 0));
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(suits_attention_by_products({x, x, x, true}, 0));
}

}  // namespace
}  // namespace scalemark::attention_test
