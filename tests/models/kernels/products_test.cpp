// Products in pieces: against float64, each element once whatever the pieces, and no worse than
// torch's whole product.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/kernels/kernels.hpp"
#include "models/model.hpp"
#include "models/operator_flops.hpp"
#include "models/operator_set.hpp"
#include "tests/models/gradient_taker.hpp"

namespace scalemark::products_test {
namespace {

TEST(ProductPieces, AreOfAsManyColumnsAsStayInCacheEvenlyOverTheThreads) {
  const auto pieces = [](std::int64_t m, std::int64_t n, int threads) {
    return product_pieces(m, 1024, n, threads);
  };
  EXPECT_EQ(pieces(256, 1024, 1), (ProductPieces{1, 2}));
  EXPECT_EQ(pieces(256, 3072, 2), (ProductPieces{1, 6}));
  EXPECT_EQ(pieces(256, 1024, 3), (ProductPieces{1, 3}));
  EXPECT_EQ(pieces(256, 30522, 2), (ProductPieces{1, 60}));
  EXPECT_EQ(pieces(1024, 1024, 8), (ProductPieces{4, 2}));
  EXPECT_EQ(pieces(256, 512, 1), (ProductPieces{1, 1}));
  EXPECT_EQ(pieces(80, 512, 8), (ProductPieces{1, 1})) << "too few rows for eight threads";
  EXPECT_EQ(pieces(4, 1024, 2), (ProductPieces{1, 1})) << "too small";
}

struct Case {
  std::int64_t m, k, n;
  ProductPieces pieces;
};

class Products : public ::testing::TestWithParam<Case> {};

TEST_P(Products, AreThoseOfFloat64) {
  const auto& [m, k, n, pieces] = GetParam();
  torch::manual_seed(1);
  const at::Tensor a = at::randn({m, k}), weight = at::randn({n, k}), bias = at::randn({n}),
                   plain = at::randn({k, n});
  const auto expect_close = [&](const at::Tensor& found, const at::Tensor& exact,
                                const at::Tensor& whole) {
    ASSERT_EQ(found.sizes(), exact.sizes());
    const double ours = (found.to(at::kDouble) - exact).abs().max().item<double>();
    const double torchs = (whole.to(at::kDouble) - exact).abs().max().item<double>();
    EXPECT_LE(ours, 1.5 * torchs + 1e-6 * std::sqrt(static_cast<double>(k)));
  };
  const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
  expect_close(product_in_pieces(a, weight.t(), bias, pieces),
               at::linear(wide(a), wide(weight), wide(bias)), at::linear(a, weight, bias));
  expect_close(product_in_pieces(a, plain, {}, pieces), at::mm(wide(a), wide(plain)),
               at::mm(a, plain));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         ::testing::Values(Case{64, 96, 1024, {1, 2}}, Case{67, 33, 1000, {1, 3}},
                                           Case{7, 5, 17, {3, 2}}, Case{5, 64, 40, {4, 1}},
                                           Case{1, 1, 1, {1, 1}}, Case{130, 40, 530, {2, 4}}));

TEST(Products, AreTheSameForEveryNumberOfThreads) {
  torch::manual_seed(2);
  const at::Tensor a = at::randn({128, 256}), weight = at::randn({1536, 256});
  const int before = at::get_num_threads();
  std::vector<at::Tensor> found;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    found.push_back(product_in_pieces(a, weight.t(), {}, {1, 4}));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(found[0], found[1]));
}

TEST(WeightProducts, AreThoseOfFloat64AddedOrWritten) {
  struct Shape {
    std::int64_t rows, out, in;
  };
  const int before = at::get_num_threads();
  torch::manual_seed(6);
  for (const auto& [rows, out, in] : {Shape{1, 1, 1}, Shape{5, 6, 16}, Shape{64, 97, 130},
                                      Shape{385, 193, 47}, Shape{800, 40, 1050}}) {
    // Columns of wider matrices, and a gradient that begins anywhere.
    const at::Tensor dy = at::randn({rows, out + 3}).narrow(1, 1, out),
                     x = at::randn({rows, in + 5}).narrow(1, 3, in);
    const at::Tensor start = at::randn({out * in + 1}).narrow(0, 1, out * in).view({out, in});
    const at::Tensor exact = at::mm(dy.to(at::kDouble).t(), x.to(at::kDouble));
    const double torchs =
        (at::mm(dy.t(), x).to(at::kDouble) - exact).abs().max().item<double>() + 1e-6;
    std::optional<at::Tensor> first;
    for (const int threads : {1, 2, 3, 4}) {
      at::set_num_threads(threads);
      at::Tensor added = start.clone(), written = at::full({out, in}, NAN);
      add_weight_product(added, true, dy, x);
      add_weight_product(written, false, dy, x);
      EXPECT_LT((written.to(at::kDouble) - exact).abs().max().item<double>(), 4 * torchs);
      EXPECT_LT((added - start).to(at::kDouble).sub(exact).abs().max().item<double>(),
                4 * torchs + 1e-5);
      if (!first) first = written;
      EXPECT_TRUE(at::equal(written, *first)) << threads << " threads";
    }
  }
  at::set_num_threads(before);
}

TEST(WeightProducts, AreForFp32WithRowsEnough) {
  const auto suits = [](std::int64_t rows, at::ScalarType dtype) {
    const at::Tensor dy = at::zeros({rows, 1024}, dtype), x = at::zeros({rows, 1024}, dtype);
    return suits_weight_product(at::zeros({1024, 1024}), dy, x);
  };
  EXPECT_FALSE(suits(15, at::kFloat));
  EXPECT_FALSE(suits(64, at::kBFloat16));
  EXPECT_FALSE(suits(64, at::kDouble));
  if (has_avx512()) {
    EXPECT_FALSE(suits(64, at::kFloat));
  }
}

/// Returns the norm of found - exact in units of that of exact.
double apart(const at::Tensor& found, const at::Tensor& exact) {
  const at::Tensor wide = exact.to(at::kDouble);
  return ((found.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

TEST(VocabularyProducts, HaveRowsAnOddNumberOfCacheLinesApart) {
  const auto stride = [](std::int64_t columns, at::ScalarType dtype) {
    return rows_apart(3, columns, at::TensorOptions(dtype)).stride(0);
  };
  EXPECT_EQ(stride(50257, at::kBFloat16), 32 * 1571);
  EXPECT_EQ(stride(32000, at::kBFloat16), 32 * 1001);
  EXPECT_EQ(stride(32, at::kFloat), 16 * 3);
  EXPECT_EQ(stride(1, at::kFloat), 16);
}

TEST(VocabularyProducts, AreThoseOfFloat64WithOneRoundingOrTwo) {
  torch::manual_seed(4);
  for (const std::int64_t classes : {16384, 20001}) {
    for (const std::int64_t rows : {8, 512}) {
      const at::Tensor x = at::randn({2, rows / 2, 16}, at::kBFloat16),
                       weight = at::randn({classes, 16}, at::kBFloat16);
      const at::Tensor logits = linear_product(x, weight, {});
      EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, rows / 2, classes}));
      EXPECT_EQ(logits.stride(1) / 32 % 2, 1);
      EXPECT_LT(apart(logits, at::linear(x.to(at::kDouble), weight.to(at::kDouble))), 0x1p-8);
      at::Tensor dy = rows_apart(rows, classes, weight.options());
      dy.normal_();
      const at::Tensor exact = at::mm(dy.to(at::kDouble), weight.to(at::kDouble));
      EXPECT_LT(apart(product_input_gradient(dy, weight), exact), 0x1p-8);
    }
  }
}

TEST(VocabularyProducts, OfADecoderTrainAsThePlainOnes) {
  const auto gradients = [](const OperatorSet& operators) {
    torch::manual_seed(5);
    ModelOptions options;
    options.name = "llama_tiny";
    options.vocabulary = 16400;
    options.sequence_length = 16;
    const auto model = make_model(options);
    model->set_operators(operators);
    model->set_gate(std::make_shared<testing::GradientTaker>());
    model->to(at::kBFloat16);
    model->loss_sum(model->synthetic_batch(32, 1, at::kCPU, at::kBFloat16)).backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& leaf : model->parameters()) all.push_back(leaf.grad().to(at::kDouble));
    return all;
  };
  const auto ours = gradients(*own_operators()), plain = gradients(torch_operators());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_LT(apart(ours[i], plain[i]), 0.05);
}

/// One step of a model whose products are large enough to be cut.
std::pair<double, std::vector<at::Tensor>> step(const OperatorSet& operators) {
  torch::manual_seed(3);
  ModelOptions options;
  options.name = "transformer_tiny";
  options.sequence_length = 64;
  options.dropout = 0;
  const auto model = make_model(options);
  model->set_operators(operators);
  model->set_gate(std::make_shared<testing::GradientTaker>());
  const at::Tensor loss = model->loss_sum(model->synthetic_batch(4, 1, at::kCPU, at::kFloat));
  loss.backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& leaf : model->parameters()) gradients.push_back(leaf.grad());
  return {loss.item<double>(), gradients};
}

TEST(Products, OfAModelAreThoseOfThePlainOne) {
  const auto [loss, gradients] = step(*own_operators());
  const auto [plain_loss, plain_gradients] = step(torch_operators());
  EXPECT_NEAR(loss, plain_loss, 1e-5 * plain_loss);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_LT((gradients[i] - plain_gradients[i]).norm().item<double>(),
              1e-4 * plain_gradients[i].norm().item<double>() + 1e-6);
}

}  // namespace
}  // namespace scalemark::products_test
