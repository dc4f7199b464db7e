// Cross-entropy in one pass each way: against torch in float64, and at labels and logits that are
// none.
#include <gtest/gtest.h>

#include <limits>

#include "models/kernels/kernels.hpp"

namespace scalemark::cross_entropy_test {
namespace {

constexpr std::int64_t kIgnored = -100;

struct Case {
  std::int64_t rows, classes;
  at::ScalarType dtype;
  double smoothing, spread;
};

at::Tensor torchs(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, kIgnored, smoothing);
}

at::Tensor gradient_of(const at::Tensor& loss, const at::Tensor& logits) {
  return torch::autograd::grad({loss * 0.5}, {logits})[0];
}

class CrossEntropy : public ::testing::TestWithParam<Case> {};

TEST_P(CrossEntropy, IsThatOfTorchInFloat64) {
  const Case c = GetParam();
  torch::manual_seed(3);
  const at::Tensor logits =
      (at::randn({c.rows, c.classes}) * c.spread).to(c.dtype).set_requires_grad(true);
  const at::Tensor exact = logits.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor labels = at::randint(c.classes, {c.rows}, at::kLong);
  labels[0] = kIgnored;
  labels[1] = c.classes - 1;
  const at::Tensor ours = cross_entropy_fused(logits, labels, kIgnored, c.smoothing);
  const at::Tensor wanted = torchs(exact, labels, c.smoothing);
  EXPECT_EQ(ours.scalar_type(), at::kFloat);
  EXPECT_NEAR(ours.item<double>(), wanted.item<double>(), 1e-6 * wanted.item<double>());
  const at::Tensor gradient = gradient_of(ours, logits), right = gradient_of(wanted, exact);
  EXPECT_EQ(gradient.scalar_type(), c.dtype);
  EXPECT_EQ(gradient[0].count_nonzero().item<std::int64_t>(), 0);
  const double rounding = c.dtype == at::kFloat ? 1e-6 : 0x1p-8;
  const at::Tensor apart = (gradient.to(at::kDouble) - right).abs();
  EXPECT_TRUE((apart <= rounding * right.abs() + 1e-7).all().item<bool>()) << apart.max();
}

INSTANTIATE_TEST_SUITE_P(Shapes, CrossEntropy,
                         ::testing::Values(Case{5, 7, at::kFloat, 0, 1},
                                           Case{5, 64, at::kFloat, 0.1, 5},
                                           Case{33, 1000, at::kFloat, 0.1, 40},
                                           Case{33, 1000, at::kBFloat16, 0, 5},
                                           Case{9, 30522, at::kBFloat16, 0.1, 3}));

TEST(CrossEntropy, IsTheSameWithAnyNumberOfThreads) {
  torch::manual_seed(4);
  const at::Tensor logits = at::randn({31, 777}), labels = at::randint(777, {31}, at::kLong);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = cross_entropy_fused(logits, labels, kIgnored, 0.1);
  at::set_num_threads(2);
  const at::Tensor together = cross_entropy_fused(logits, labels, kIgnored, 0.1);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(alone, together));
}

TEST(CrossEntropy, TakesRowsThatLieApartAndGivesSuch) {
  torch::manual_seed(5);
  const at::Tensor packed = at::randn({6, 777}), labels = at::randint(777, {6}, at::kLong);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor close = packed.to(dtype).set_requires_grad(true);
    at::Tensor apart = rows_apart(6, 777, close.options().requires_grad(false));
    apart.copy_(close.detach()).set_requires_grad(true);
    const at::Tensor loss = cross_entropy_fused(apart, labels, kIgnored, 0.1);
    EXPECT_TRUE(at::equal(loss, cross_entropy_fused(close, labels, kIgnored, 0.1)));
    const at::Tensor gradient = gradient_of(loss, apart);
    EXPECT_EQ(gradient.strides(), apart.strides());
    EXPECT_TRUE(
        at::equal(gradient, gradient_of(cross_entropy_fused(close, labels, kIgnored, 0.1), close)));
  }
  const at::Tensor across = packed.t().contiguous().t();
  EXPECT_TRUE(at::equal(cross_entropy_fused(across, labels, kIgnored, 0),
                        cross_entropy_fused(packed, labels, kIgnored, 0)));
}

TEST(CrossEntropy, PassesWhatIsNoNumber) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor logits = at::zeros({2, 100}), labels = at::zeros({2}, at::kLong);
    logits[1][70] = value;
    EXPECT_TRUE(std::isnan(cross_entropy_fused(logits, labels, kIgnored, 0).item<float>()));
    EXPECT_TRUE(std::isnan(torchs(logits, labels, 0).item<float>()));
  }
}

TEST(CrossEntropy, ClassesThatCannotBeHaveNoShare) {
  const at::Tensor logits = at::zeros({1, 10}), labels = at::zeros({1}, at::kLong);
  logits[0].slice(0, 5).fill_(-std::numeric_limits<float>::infinity());
  EXPECT_NEAR(cross_entropy_fused(logits, labels, kIgnored, 0).item<double>(), std::log(5.), 1e-6);
}

TEST(CrossEntropy, RefusesALabelThatIsNoClass) {
  for (const std::int64_t label : {10, -1})
    EXPECT_THROW(cross_entropy_fused(at::zeros({1, 10}), at::full({1}, label), kIgnored, 0),
                 c10::IndexError);
}

}  // namespace
}  // namespace scalemark::cross_entropy_test
