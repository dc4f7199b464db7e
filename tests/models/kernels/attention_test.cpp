// Attention with dropout: its values and gradients are those of float64 with the same elements
// dropped. Attention without, by whole products and by tiles: as near to float64 as LibTorch's own
// in the same type.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/kernels/kernels.hpp"
#include "models/kernels/next_factors.hpp"

namespace scalemark::attention_test {
namespace {

struct Case {
  const char* name;
  std::int64_t heads, key_heads, length, depth;
  bool causal;
};

/// Sizes whose attention is computed by tiles, where there are any, have depths in whole 32.
bool are_for_tiles(std::int64_t depth) { return has_pair_products() && depth % 32 == 0; }

/// The result of attention on these inputs, converted to a type, and the gradients of the inputs.
template <typename Attention>
std::vector<at::Tensor> values_and_gradients(const std::array<at::Tensor, 3>& inputs,
                                             const at::Tensor& upstream, at::ScalarType type,
                                             const Attention& attention) {
  std::array<at::Tensor, 3> leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    leaves[i] = inputs[i].detach().to(type).set_requires_grad(true);
  const at::Tensor y = attention({leaves[0], leaves[1], leaves[2], false});
  y.backward(upstream.to(type));
  std::vector<at::Tensor> found{y.detach()};
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

class WithoutDropout : public ::testing::TestWithParam<Case> {};

TEST_P(WithoutDropout, IsAsNearToFloat64AsLibTorch) {
  const Case& one = GetParam();
  torch::manual_seed(1);
  const auto random = [&](std::int64_t heads) {
    return at::randn({3, heads, one.length, one.depth}).to(at::kBFloat16);
  };
  const std::array inputs{random(one.heads), random(one.key_heads), random(one.key_heads)};
  const at::Tensor upstream = random(one.heads);
  const auto result = [&](const OperatorSet& operators, at::ScalarType type) {
    return values_and_gradients(inputs, upstream, type, [&](AttentionInputs all) {
      all.causal = one.causal;
      return operators.attention(all, 0);
    });
  };
  const AttentionInputs all{inputs[0], inputs[1], inputs[2], one.causal};
  ASSERT_TRUE(suits_attention_by_products(all, 0));
  const bool tiled = suits_tiled_attention(all);
  ASSERT_EQ(tiled, are_for_tiles(one.depth));
  const auto exact = result(torch_operators(), at::kDouble);
  const auto usual = result(torch_operators(), at::kBFloat16);
  const auto found = result(*own_operators(), at::kBFloat16);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto error = [&](const at::Tensor& x) {
      return (x.to(at::kDouble) - exact[i]).norm().item<double>();
    };
    EXPECT_EQ(found[i].sizes(), exact[i].sizes());
    // Whole products round scores to bf16 on the way back.
    EXPECT_LT(error(found[i]), (tiled ? 1.3 : 2.5) * error(usual[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WithoutDropout,
    ::testing::Values(Case{"causal", 4, 4, 33, 16, true}, Case{"open", 4, 4, 33, 16, false},
                      Case{"grouped", 6, 2, 17, 16, true}, Case{"of_one_key", 4, 1, 70, 16, true},
                      Case{"deep", 4, 4, 33, 32, true}, Case{"deep_open", 2, 2, 100, 96, false},
                      Case{"deep_grouped", 6, 2, 64, 64, true},
                      Case{"deep_of_one_key", 4, 1, 70, 64, false},
                      Case{"in_panels", 2, 1, 600, 32, true},
                      Case{"in_panels_open", 2, 1, 530, 32, false}),
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

struct Dropped {
  const char* name;
  std::int64_t targets, sources;  ///< lengths
  std::int64_t depth;
  bool causal, masked;
};

class WithDropout : public ::testing::TestWithParam<Dropped> {};

TEST_P(WithDropout, DropsTheSameElementsBothWays) {
  const Dropped& one = GetParam();
  constexpr std::int64_t kBatch = 3, kHeads = 2;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    torch::manual_seed(1);
    const auto random = [&](std::int64_t length) {
      return at::randn({kBatch, kHeads, length, one.depth}).to(type);
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
    const auto found = result(type, [&](const AttentionInputs& all) {
      EXPECT_TRUE(suits_attention(all, 0.25));
      EXPECT_EQ(suits_tiled_attention(all), type != at::kFloat && are_for_tiles(one.depth));
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
                         ::testing::Values(Dropped{"open", 70, 70, 20, false, false},
                                           Dropped{"causal", 33, 33, 20, true, false},
                                           Dropped{"masked", 40, 40, 20, false, true},
                                           Dropped{"of_other_lengths", 5, 129, 20, false, true},
                                           Dropped{"deep", 70, 70, 32, false, false},
                                           Dropped{"deep_causal", 33, 33, 64, true, false},
                                           Dropped{"deep_masked", 64, 64, 64, false, true},
                                           Dropped{"in_panels", 45, 300, 32, false, true}),
                         [](const auto& info) { return info.param.name; });

/// Returns the results of attention by tiles and the gradients of its inputs.
std::vector<at::Tensor> by_tiles(const std::array<at::Tensor, 3>& inputs,
                                 const at::Tensor& upstream, double dropout_probability) {
  torch::manual_seed(2);
  return values_and_gradients(inputs, upstream, at::kBFloat16, [&](AttentionInputs all) {
    all.causal = true;
    return tiled_attention(all, dropout_probability);
  });
}

TEST(ByTiles, GivesTheSameBitsWithAnyNumberOfThreadsAndInAnyMemory) {
  if (!has_pair_products()) GTEST_SKIP() << "the processor has no AVX512_BF16";
  torch::manual_seed(1);
  const auto random = [](std::int64_t heads) {
    return at::randn({2, heads, 90, 64}).to(at::kBFloat16);
  };
  const std::array inputs{random(4), random(2), random(2)};
  const at::Tensor upstream = random(4);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = by_tiles(inputs, upstream, 0.25);
  at::set_num_threads(3);
  const auto many = by_tiles(inputs, upstream, 0.25);
  at::set_num_threads(threads);
  const auto in_columns = [](const at::Tensor& x) {
    return x.transpose(2, 3).contiguous().transpose(2, 3);
  };
  const auto in_order = [](const at::Tensor& x) {
    return x.transpose(1, 2).contiguous().transpose(1, 2);
  };
  const auto moved = by_tiles({in_columns(inputs[0]), in_order(inputs[1]), in_columns(inputs[2])},
                              in_columns(upstream), 0.25);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::equal(one[i], many[i])) << i;
    EXPECT_TRUE(at::equal(one[i], moved[i])) << i;
  }
}

TEST(ByTiles, ANotANumberStaysInItsHead) {
  if (!has_pair_products()) GTEST_SKIP() << "the processor has no AVX512_BF16";
  torch::manual_seed(1);
  std::array inputs{at::randn({1, 2, 40, 32}), at::randn({1, 2, 40, 32}),
                    at::randn({1, 2, 40, 32})};
  inputs[0][0][1][39][0] = std::numeric_limits<float>::quiet_NaN();
  const auto found = by_tiles(inputs, at::ones({1, 2, 40, 32}), 0);
  EXPECT_TRUE(found[0][0][1][39].isnan().all().item<bool>());
  for (const at::Tensor& x : found) EXPECT_FALSE(x[0][0].isnan().any().item<bool>());
  for (std::size_t i = 1; i < found.size(); ++i)
    EXPECT_TRUE(found[i][0][1].isnan().any().item<bool>()) << i;
}

TEST(ByTiles, IsOfHeadsForAllThreads) {
  const auto zeros = [](at::IntArrayRef sizes) { return at::zeros(sizes).to(at::kBFloat16); };
  const at::Tensor x = zeros({8, 4, 32, 64}), shallow = zeros({8, 4, 32, 16}),
                   brief = zeros({8, 4, 31, 64}), long_one = zeros({8, 4, 99, 64});
  EXPECT_EQ(suits_tiled_attention({x, x, x, true}), has_pair_products());
  EXPECT_EQ(suits_tiled_attention({x, long_one, long_one, false}), has_pair_products());
  EXPECT_FALSE(suits_tiled_attention({x, long_one, long_one, true}));
  EXPECT_FALSE(suits_tiled_attention({x, brief, brief, false}));
  EXPECT_FALSE(suits_tiled_attention({shallow, shallow, shallow, true}));
  const at::Tensor wide = x.to(at::kFloat), one = x.narrow(0, 0, 1).narrow(1, 0, 1);
  EXPECT_FALSE(suits_tiled_attention({wide, wide, wide, true}));
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  EXPECT_FALSE(suits_tiled_attention({one, one, one, true}));
  at::set_num_threads(threads);
}

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
