// Batch normalisation in one pass each way: against torch in float64, and no worse than torch's own
// operators in the same dtype.
#include <gtest/gtest.h>

#include <limits>

#include "models/kernels/kernels.hpp"
#include "models/model.hpp"

namespace scalemark::batch_norm_test {
namespace {

struct Case {
  std::int64_t batch, channels, size;
  at::ScalarType dtype;
  bool relu, residual;
};

struct Tensors {
  at::Tensor x, residual, dy, weight, bias, running_mean, running_variance;
};

/// Values that `dtype` holds, the same in float64: channels far from zero, of unlike spread.
Tensors draw(const Case& c) {
  torch::manual_seed(5);
  const auto activation = [&](double mean, double deviation) {
    const at::Tensor values = at::randn({c.batch, c.channels, c.size, c.size});
    return values.mul_(deviation).add_(mean).to(c.dtype).contiguous(at::MemoryFormat::ChannelsLast);
  };
  Tensors made{activation(3, 0.7),          activation(0, 1),        activation(0, 1),
               at::randn({c.channels}) + 1, at::randn({c.channels}), at::randn({c.channels}),
               at::rand({c.channels}) + 0.5};
  if (!c.residual) made.residual = at::Tensor();
  return made;
}

struct Results {
  at::Tensor y, dx, dweight, dbias, dresidual, running_mean, running_variance;

  std::vector<std::pair<const char*, at::Tensor>> all() const {
    return {{"y", y},
            {"dx", dx},
            {"dweight", dweight},
            {"dbias", dbias},
            {"dresidual", dresidual},
            {"running mean", running_mean},
            {"running variance", running_variance}};
  }
};

/// Of the tensors as they are (fused or torch's operators), or widened to float64 (`exact`).
Results compute(const Case& c, const Tensors& given, bool fused, bool exact) {
  const auto like = [&](const at::Tensor& t) {
    return t.defined() ? t.detach().to(exact ? at::kDouble : t.scalar_type(), false, true) : t;
  };
  const auto leaf = [&](const at::Tensor& t) {
    return t.defined() ? like(t).set_requires_grad(true) : t;
  };
  const at::Tensor x = leaf(given.x), residual = leaf(given.residual);
  const BatchNormTensors layer{leaf(given.weight), leaf(given.bias), like(given.running_mean),
                               like(given.running_variance)};
  at::Tensor y;
  if (fused) {
    y = batch_norm_fused(x, layer, 0.1, 1e-5, c.relu, residual);
  } else {
    y = at::batch_norm(x, layer.weight, layer.bias, layer.running_mean, layer.running_variance,
                       true, 0.1, 1e-5, true);
    if (residual.defined()) y = y + residual;
    if (c.relu) y = at::relu(y);
  }
  std::vector<at::Tensor> inputs{x, layer.weight, layer.bias};
  if (residual.defined()) inputs.push_back(residual);
  const auto gradients = torch::autograd::grad({y}, inputs, {like(given.dy)});
  return {y.detach(),
          gradients[0],
          gradients[1],
          gradients[2],
          residual.defined() ? gradients[3] : at::Tensor(),
          layer.running_mean,
          layer.running_variance};
}

/// Root mean square of the difference to the exact values, relative to theirs. Not the largest: a
/// value next to zero may fall on either side of ReLU.
double error(const at::Tensor& found, const at::Tensor& exact) {
  return ((found.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

class BatchNormFused : public ::testing::TestWithParam<Case> {};

TEST_P(BatchNormFused, IsNoWorseThanTorchsOperators) {
  const Case c = GetParam();
  const Tensors given = draw(c);
  ASSERT_TRUE(can_fuse_batch_norm(given.x));
  const auto exact = compute(c, given, false, true).all();
  const auto plain = compute(c, given, false, false).all();
  const auto fused = compute(c, given, true, false).all();
  const double rounding = c.dtype == at::kFloat ? 1e-6 : 4e-3;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (!exact[i].second.defined()) continue;
    const double of_fused = error(fused[i].second, exact[i].second);
    EXPECT_LE(of_fused, rounding) << exact[i].first;
    EXPECT_LE(of_fused, 1.5 * error(plain[i].second, exact[i].second) + 2e-7) << exact[i].first;
    EXPECT_EQ(fused[i].second.scalar_type(), plain[i].second.scalar_type());
  }
  EXPECT_TRUE(fused[0].second.is_contiguous(at::MemoryFormat::ChannelsLast));
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const bool relu : {false, true})
      for (const bool residual : {false, true}) {
        cases.push_back({4, 64, 20, dtype, relu, residual});
        cases.push_back({3, 37, 5, dtype, relu, residual});  // no multiple of anything
        cases.push_back({5, 130, 1, dtype, relu, residual});
      }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormFused, ::testing::ValuesIn(all_cases()));

/// The mean is 10,000 deviations off; and the first row is an outlier.
TEST(BatchNormFused, VarianceSurvivesAFarMean) {
  torch::manual_seed(6);
  at::Tensor x = (at::randn({8, 16, 40, 40}) + 1e4).contiguous(at::MemoryFormat::ChannelsLast);
  for (const bool outlier : {false, true}) {
    if (outlier) x.select(0, 0).select(1, 0).select(1, 0).fill_(0);
    const BatchNormTensors layer{at::ones({16}), at::zeros({16}), at::zeros({16}), at::zeros({16})};
    batch_norm_fused(x, layer, 1, 1e-5, false);
    const at::Tensor exact = x.to(at::kDouble);
    EXPECT_LT(error(layer.running_mean, exact.mean({0, 2, 3})), 1e-7);
    EXPECT_LT(error(layer.running_variance, exact.var(at::IntArrayRef{0, 2, 3}, true)), 5e-6);
  }
}

TEST(BatchNormFused, RepeatsForTheSameThreads) {
  const Case c{8, 96, 30, at::kBFloat16, true, true};
  const Tensors given = draw(c);
  const int threads = at::get_num_threads();
  for (const int n : {1, 2, 3}) {
    at::set_num_threads(n);
    const auto once = compute(c, given, true, false).all();
    const auto again = compute(c, given, true, false).all();
    for (std::size_t i = 0; i < once.size(); ++i)
      EXPECT_TRUE(at::equal(once[i].second, again[i].second)) << once[i].first;
  }
  at::set_num_threads(threads);
}

/// The gradient of the result is overwritten where nobody else holds it, and only there.
TEST(BatchNormFused, OverwritesOnlyGradientsThatNobodyElseReads) {
  for (const Case& c : all_cases()) {
    const Tensors given = draw(c);
    const auto expected = compute(c, given, true, false);
    const at::Tensor x = given.x.detach().clone().set_requires_grad(true);
    const at::Tensor residual =
        c.residual ? given.residual.detach().clone().set_requires_grad(true) : at::Tensor();
    const auto backward = [&](at::Tensor dy) {
      const at::Tensor y = batch_norm_fused(
          x, {given.weight, given.bias, given.running_mean, given.running_variance}, 0.1, 1e-5,
          c.relu, residual);
      const at::NoGradGuard as_in_a_backward_pass;
      torch::autograd::variable_list gradients;
      gradients.push_back(std::move(dy));
      gradients = (*y.grad_fn())(std::move(gradients));
      EXPECT_TRUE(at::equal(gradients[0], expected.dx));
      if (c.residual) EXPECT_TRUE(at::equal(gradients[3], expected.dresidual));
      return gradients;
    };
    at::Tensor alone = given.dy.clone();
    const void* const memory = alone.const_data_ptr();
    const auto made = backward(std::move(alone));
    if (c.residual) EXPECT_NE(made[0].const_data_ptr(), memory);
    if (c.relu || !c.residual) EXPECT_EQ(made[c.residual ? 3 : 0].const_data_ptr(), memory);

    const at::Tensor held = given.dy.clone(), viewed = given.dy.clone();
    backward(held);
    EXPECT_TRUE(at::equal(held, given.dy));
    backward(viewed.view_as(viewed));
    EXPECT_TRUE(at::equal(viewed, given.dy));
  }
}

/// A run that diverges must not look sound.
TEST(BatchNormFused, NaNStays) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    Tensors given = draw({2, 40, 6, dtype, true, true});
    given.x.select(0, 1).select(0, 7).fill_(std::numeric_limits<float>::quiet_NaN());
    const auto found = compute({2, 40, 6, dtype, true, true}, given, true, false);
    EXPECT_TRUE(found.y.select(1, 7).isnan().all().item<bool>());
    EXPECT_TRUE(found.dx.select(1, 7).isnan().all().item<bool>());
    EXPECT_FALSE(found.y.narrow(1, 8, 32).isnan().any().item<bool>());
  }
}

TEST(BatchNormFused, IsOfChannelsLastOnTheCpu) {
  const at::Tensor x = at::randn({2, 8, 5, 5});
  EXPECT_FALSE(can_fuse_batch_norm(x));
  const at::Tensor last = x.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(can_fuse_batch_norm(last));
  EXPECT_FALSE(can_fuse_batch_norm(last.to(at::kDouble)));
  EXPECT_FALSE(can_fuse_batch_norm(last.to(at::kHalf)));
  EXPECT_FALSE(can_fuse_batch_norm(at::randn({1, 8, 1, 1})));
}

/// Loss, all gradients and running statistics of a network: {name, values in float64}.
std::vector<std::pair<std::string, at::Tensor>> network(const OperatorSet& operators,
                                                        at::ScalarType dtype) {
  torch::manual_seed(7);
  ModelOptions options{"resnet50", 64, 10, true};
  options.operators = &operators;
  const auto model = make_model(options);
  Batch batch = model->synthetic_batch(4, 8, at::kCPU, at::kFloat);
  if (dtype == at::kDouble) {
    model->to(dtype);
    batch.inputs = batch.inputs.to(dtype);
  }
  std::vector<std::pair<std::string, at::Tensor>> found;
  const at::Tensor loss = model->loss_sum(batch);
  loss.backward();
  found.emplace_back("loss", loss.detach().to(at::kDouble));
  for (const auto& leaf : model->named_parameters())
    found.emplace_back(leaf.key(), leaf.value().grad().to(at::kDouble));
  for (const auto& buffer : model->named_buffers())
    found.emplace_back(buffer.key(), buffer.value().to(at::kDouble));
  return found;
}

TEST(FusedNetwork, GradientsAreNoWorse) {
  const auto exact = network(torch_operators(), at::kDouble);
  const auto plain = network(torch_operators(), at::kFloat);
  const auto fused = network(*own_operators(), at::kFloat);
  double of_plain = 0, of_fused = 0;  // of the whole network: rounding of one layer is luck
  for (std::size_t i = 0; i < exact.size(); ++i) {
    of_fused += error(fused[i].second, exact[i].second);
    of_plain += error(plain[i].second, exact[i].second);
  }
  EXPECT_LT(of_fused, 1.2 * of_plain);
  EXPECT_FALSE(at::equal(fused[1].second, plain[1].second)) << "nothing was fused";
}

}  // namespace
}  // namespace scalemark::batch_norm_test
