// Dropout's masks: their rate, their independence, and that the way back uses the mask of the way
// forth.
#include <gtest/gtest.h>

#include <cmath>

#include "models/catalog.hpp"
#include "models/kernels/kernels.hpp"
#include "models/model.hpp"

namespace scalemark::dropout_test {
namespace {

/// Largest distance from its expectation of a mean of n masks with keep probability q: five
/// standard deviations.
double bound(double q, double n) { return 5 * std::sqrt(q * (1 - q) / n); }

at::Tensor mask_of(std::int64_t n, double p) { return dropout(at::ones({n}), p) > 0; }

TEST(Dropout, KeepsTheStatedShareAndScalesIt) {
  torch::manual_seed(1);
  for (const double p : {0.1, 0.3, 0.5})
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const std::int64_t n = 1'000'003;  // no multiple of a block
      const at::Tensor y = dropout(at::full({n}, 2, dtype), p).to(at::kFloat);
      const at::Tensor kept = y > 0;
      EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 1 - p, bound(p, n));
      const double tolerance = dtype == at::kFloat ? 1e-4 : 0.02;
      EXPECT_TRUE(at::allclose(y.masked_select(kept), at::full({}, 2 / (1 - p)), tolerance));
    }
}

TEST(Dropout, NeighboursAndCallsAreIndependent) {
  torch::manual_seed(2);
  const double p = 0.3, n = 1 << 20;
  const at::Tensor one = mask_of(1 << 20, p), other = mask_of(1 << 20, p);
  const auto both = [&](const at::Tensor& a, const at::Tensor& b) {
    return a.logical_and(b).to(at::kDouble).mean().item<double>();
  };
  const double expected = (1 - p) * (1 - p);
  EXPECT_NEAR(both(one, other), expected, bound(expected, n));
  for (const int lag : {1, 2, 16, 31, 32, 33, 64, 1024})
    EXPECT_NEAR(both(one.slice(0, lag), one.slice(0, 0, -lag)), expected, 2 * bound(expected, n))
        << "lag " << lag;
}

TEST(Dropout, IsDecidedByTheSeedWhateverTheThreads) {
  const auto draw = [](int threads) {
    at::set_num_threads(threads);
    torch::manual_seed(3);
    return mask_of(1 << 20, 0.1);
  };
  const at::Tensor expected = draw(1);
  EXPECT_TRUE(at::equal(draw(2), expected));
  EXPECT_TRUE(at::equal(draw(1), expected));
}

TEST(Dropout, GradientsPassWhereValuesPassed) {
  torch::manual_seed(4);
  const at::Tensor x = at::randn({37, 113}).set_requires_grad(true);
  for (const bool relu : {false, true}) {
    const at::Tensor y = relu ? relu_dropout(x, 0.25) : dropout(x, 0.25);
    const at::Tensor dy = at::randn_like(y);
    const at::Tensor dx = torch::autograd::grad({y}, {x}, {dy})[0];
    const at::Tensor passed = y.detach() != 0;
    EXPECT_TRUE(at::allclose(dx, dy * passed / 0.75, 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(y, x * passed / 0.75, 1e-5, 1e-6));
    if (relu) {
      EXPECT_FALSE((y < 0).any().item<bool>());
    }
  }
}

TEST(Dropout, OfNothingIsTheIdentity) {
  const at::Tensor x = at::randn({5});
  EXPECT_TRUE(dropout(x, 0).is_same(x));
  EXPECT_TRUE(at::equal(relu_dropout(x, 0), at::relu(x)));
  EXPECT_EQ(dropout(at::ones({5}, at::kDouble), 0.5).scalar_type(), at::kDouble);
}

TEST(Dropout, OfClassifiersIsOfTrainingAlone) {
  for (const char* name : {"vgg16", "alexnet", "inception3"}) {
    ModelOptions options{name, find_model(name)->smallest, 10, true};
    options.dropout = 0.5;
    const auto model = make_model(options);
    const Batch batch = model->synthetic_batch(2, 1, at::kCPU, at::kFloat);
    const at::NoGradGuard no_grad;
    EXPECT_GT((model->forward(batch) - model->forward(batch)).abs().max().item<double>(), 1e-2)
        << name;
    model->eval();
    EXPECT_TRUE(at::equal(model->forward(batch), model->forward(batch))) << name;
  }
}

}  // namespace
}  // namespace scalemark::dropout_test
