// Attention with dropout: its values and gradients are those of float64 with the same elements
// dropped. Attention whose gradient is made of whole products: as near to float64 as LibTorch's own
// in the same type.
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

/// The result of attention on these inputs, converted to a type, and the gradients of the inputs.
template <typename Attention>
std::vector<at::Tensor> values_and_gradients(const std::array<at::Tensor, 3>& inputs,
                                             const at::Tensor& upstream, at::ScalarType type,
                                             const Attention& attention) {
  std::array<at::Tensor, 3> leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    leaves[i] = inputs[i].to(type).set_requires_grad(true);
  const at::Tensor y = attention({leaves[0], leaves[1], leaves[2], false});
  y.backward(upstream.to(type));
  std::vector<at::Tensor> found{y.detach()};
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

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
    return values_and_gradients(inputs, upstream, type, [&](AttentionInputs all) {
      all.causal = one.causal;
      return operators.attention(all, 0);
    });
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

/// Attention in float64 whose probabilities are multiplied by `factors`.
at::Tensor exact_attention(const AttentionInputs& inputs, const at::Tensor& factors) {
  at::Tensor scores = at::matmul(inputs.queries, inputs.keys.transpose(2, 3)) /
                      std::sqrt(static_cast<double>(inputs.queries.size(3)));
  if (inputs.causal)
    scores = scores + at::full({scores.size(2), scores.size(3)}, -INFINITY, at::kDouble).triu_(1);
  if (inputs.mask.defined()) scores = scores + inputs.mask.to(at::kDouble);
  return at::matmul(at::softmax(scores, -1) * factors, inputs.values);
}

/// What dropout of these sizes multiplies by, with the key that the next call draws.
at::Tensor next_factors(at::IntArrayRef sizes, double probability) {
  const std::int64_t count = c10::multiply_integers(sizes);
  std::vector<float> buffer;
  const float* const factors = DropFactors(draw_dropout_key(), probability).of(0, count, buffer);
  return at::tensor(at::ArrayRef<float>(factors, static_cast<std::size_t>(count)))
      .view(sizes)
      .to(at::kDouble);
}

struct Dropped {
  const char* name;
  std::int64_t targets, sources;  ///< lengths
  bool causal, masked;
};

class WithDropout : public ::testing::TestWithParam<Dropped> {};

TEST_P(WithDropout, DropsTheSameElementsBothWays) {
  const Dropped& one = GetParam();
  constexpr std::int64_t kBatch = 3, kHeads = 2, kDepth = 20;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    torch::manual_seed(1);
    const auto random = [&](std::int64_t length) {
      return at::randn({kBatch, kHeads, length, kDepth}).to(type);
    };
    const std::array inputs{random(one.targets), random(one.sources), random(one.sources)};
    const at::Tensor upstream = random(one.targets);
    at::Tensor mask;
    if (one.masked) {  // one source that all may see, and others by chance
      mask = at::where(at::rand({kBatch, 1, 1, one.sources}) < 0.5, -INFINITY, 0.).to(type);
      mask.select(3, 2).fill_(0);
    }
    const auto result = [&](at::ScalarType computed, const auto& attention) {
      torch::manual_seed(2);
      return values_and_gradients(inputs, upstream, computed, [&](AttentionInputs all) {
        all.causal = one.causal;
        all.mask = mask;
        return attention(all);
      });
    };
    const auto exact = result(at::kDouble, [&](const AttentionInputs& all) {
      return exact_attention(all, next_factors({kBatch, kHeads, one.targets, one.sources}, 0.25));
    });
    const auto found = result(type, [](const AttentionInputs& all) {
      EXPECT_TRUE(suits_attention(all, 0.25));
      return own_operators()->attention(all, 0.25);
    });
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_EQ(found[i].scalar_type(), type);
      const double error = (found[i].to(at::kDouble) - exact[i]).norm().item<double>();
      EXPECT_LT(error, (type == at::kFloat ? 1e-6 : 2e-2) * exact[i].norm().item<double>()) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WithDropout,
                         ::testing::Values(Dropped{"open", 70, 70, false, false},
                                           Dropped{"causal", 33, 33, true, false},
                                           Dropped{"masked", 40, 40, false, true},
                                           Dropped{"of_other_lengths", 5, 129, false, true}),
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
