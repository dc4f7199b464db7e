// The bucket layout, and that weights and gradients really live in it.
#include "train/flat_parameters.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "error.hpp"

namespace scalemark::flat_parameters_test {
namespace {

std::shared_ptr<Model> smallnet(bool channels_last = true) {
  torch::manual_seed(1);
  return make_model({"smallnet", 32, 10, channels_last});
}

std::vector<int> order_of(Model& model) { return gradient_ready_order(model, at::kCPU); }

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.detach().clone());
  return result;
}

/// The slice of a parameter's gradient, in logical (row-major) order.
at::Tensor gradient_of(FlatParameters& flat, const Slice& slice, const at::Tensor& leaf) {
  return flat.buckets()[slice.bucket].gradients.as_strided(leaf.sizes(), leaf.strides(),
                                                           slice.offset);
}

TEST(GradientReadyOrder, HoldsEveryParameterAndStartsAtTheOutput) {
  const auto model = smallnet();
  auto order = order_of(*model);
  const auto names = model->named_parameters();
  EXPECT_EQ(names[order.front()].key().substr(0, 10), "classifier");
  EXPECT_EQ(names[order.back()].key().substr(0, 5), "conv1");
  std::sort(order.begin(), order.end());
  std::vector<int> all(names.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
  for (const auto& leaf : names) EXPECT_FALSE(leaf.value().grad().defined()) << "left behind";
}

TEST(FlatParameters, LeavesBecomeViewsWithTheSameValues) {
  for (const bool channels_last : {true, false}) {
    const auto model = smallnet(channels_last);
    const auto before = copies(model->parameters());
    FlatParameters flat(*model, order_of(*model), {1 << 20, 1 << 20, 1, at::kFloat});
    const auto leaves = model->parameters();
    for (const Slice& slice : flat.slices()) {
      const at::Tensor& leaf = leaves[slice.parameter];
      const Bucket& bucket = flat.buckets()[slice.bucket];
      EXPECT_TRUE(at::equal(leaf, before[slice.parameter]));
      EXPECT_EQ(leaf.strides(), before[slice.parameter].strides());
      EXPECT_EQ(leaf.data_ptr(), bucket.weights.data_ptr<float>() + slice.offset);
      EXPECT_TRUE(leaf.is_leaf() && leaf.requires_grad());
    }
    flat.buckets()[0].weights.fill_(7);
    EXPECT_EQ(leaves[flat.slices()[0].parameter].flatten()[0].item<float>(), 7);
  }
}

TEST(FlatParameters, BucketsCloseWhenFullAndSlicesAreAligned) {
  const auto model = smallnet();
  const std::int64_t bucket_bytes = 10'000;
  FlatParameters flat(*model, order_of(*model), {bucket_bytes, 1'000, 0, at::kBFloat16});
  std::int64_t parameters = 0;
  for (const at::Tensor& leaf : model->parameters()) parameters += leaf.numel();
  EXPECT_EQ(flat.parameter_count(), parameters);
  ASSERT_GT(flat.buckets().size(), 2u);
  EXPECT_EQ(flat.slices().size(), model->parameters().size());

  std::vector<std::int64_t> end(flat.buckets().size(), 0);
  std::vector<std::int64_t> last_offset(flat.buckets().size(), 0);
  for (const Slice& slice : flat.slices()) {
    const Bucket& bucket = flat.buckets()[slice.bucket];
    EXPECT_GE(slice.offset, end[slice.bucket]) << "slices overlap";
    EXPECT_EQ(slice.vector, model->parameters()[slice.parameter].dim() == 1);
    end[slice.bucket] = slice.offset + slice.count;
    last_offset[slice.bucket] = slice.offset;
    EXPECT_LE(end[slice.bucket], bucket.count);
    EXPECT_EQ(
        reinterpret_cast<std::uintptr_t>(bucket.weights.data_ptr<float>() + slice.offset) % 64, 0u);
    EXPECT_EQ(
        reinterpret_cast<std::uintptr_t>(bucket.shadow.data_ptr<at::BFloat16>() + slice.offset) %
            64,
        0u);
  }
  std::int64_t bytes = 0;
  const auto buffers = flat.gradient_buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Bucket& bucket = flat.buckets()[i];
    const std::int64_t limit = i == 0 ? 1'000 : bucket_bytes;
    if (i + 1 < buffers.size()) {
      EXPECT_GE(bucket.count * 4, limit) << "closed too early";
    }
    EXPECT_LT(last_offset[i] * 4, limit) << "closed too late";
    EXPECT_EQ(buffers[i].data, bucket.gradients.data_ptr());
    EXPECT_EQ(buffers[i].count, static_cast<std::size_t>(bucket.count));
    EXPECT_TRUE(bucket.state.empty());
    bytes += bucket.count * 4;
  }
  EXPECT_EQ(flat.gradient_bytes(), bytes);
  const auto in = flat.parameters_in();
  EXPECT_EQ(std::accumulate(in.begin(), in.end(), 0), static_cast<int>(flat.slices().size()));
}

TEST(FlatParameters, GradientsArriveInTheirSlicesInBucketOrder) {
  const auto model = smallnet();
  const Batch batch = model->synthetic_batch(4, 1, at::kCPU, at::kFloat);
  model->loss_sum(batch).backward();
  std::vector<at::Tensor> expected;
  for (const at::Tensor& leaf : model->parameters()) {
    expected.push_back(leaf.grad().clone());
    leaf.mutable_grad().reset();
  }
  FlatParameters flat(*model, order_of(*model), {10'000, 10'000, 1, at::kFloat});
  for (int step = 0; step < 2; ++step) {  // the second must overwrite, not accumulate
    std::vector<int> ready;
    flat.set_on_ready([&](int bucket) { ready.push_back(bucket); });
    model->loss_sum(batch).backward();
    EXPECT_TRUE(std::is_sorted(ready.begin(), ready.end()));
    EXPECT_EQ(ready.size(), expected.size());
    const auto leaves = model->parameters();
    for (const Slice& slice : flat.slices()) {
      EXPECT_TRUE(at::allclose(gradient_of(flat, slice, leaves[slice.parameter]),
                               expected[slice.parameter]));
      EXPECT_FALSE(leaves[slice.parameter].grad().defined());
    }
  }
}

TEST(FlatParameters, GradientsOfLeavesCanBeLeftToAutogradForAWhile) {
  const auto model = smallnet();
  const Batch batch = model->synthetic_batch(4, 1, at::kCPU, at::kFloat);
  FlatParameters flat(*model, order_of(*model), {10'000, 10'000, 1, at::kFloat});
  const auto leaves = model->parameters();
  flat.take_leaf_gradients(false);
  model->loss_sum(batch).backward();
  for (const Slice& slice : flat.slices()) {
    const at::Tensor& leaf = leaves[slice.parameter];
    ASSERT_TRUE(leaf.grad().defined());
    EXPECT_EQ(gradient_of(flat, slice, leaf).count_nonzero().item<std::int64_t>(), 0);
  }
  const auto expected = copies([&] {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& leaf : leaves) gradients.push_back(leaf.grad());
    return gradients;
  }());
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad().reset();
  flat.take_leaf_gradients(true);
  model->loss_sum(batch).backward();
  for (const Slice& slice : flat.slices()) {
    const at::Tensor& leaf = leaves[slice.parameter];
    EXPECT_TRUE(at::allclose(gradient_of(flat, slice, leaf), expected[slice.parameter]));
    EXPECT_FALSE(leaf.grad().defined());
  }
}

/// Computes with weights that are cast anew at every use, inside the autograd graph.
class CastingGate : public ParameterGate {
 public:
  at::Tensor compute_weight(const at::Tensor& leaf) override { return leaf.to(at::kBFloat16); }
};

TEST(FlatParameters, ShadowGradientsAreThoseOfCastWeightsInFp32) {
  const auto cast = smallnet();
  cast->set_gate(std::make_shared<CastingGate>());
  const Batch batch = cast->synthetic_batch(4, 1, at::kCPU, at::kBFloat16);
  cast->loss_sum(batch).backward();

  const auto model = smallnet();
  const auto flat = std::make_shared<FlatParameters>(
      *model, order_of(*model), FlatLayout{1 << 20, 1 << 20, 0, at::kBFloat16});
  model->set_gate(flat);
  int ready = 0;
  flat->set_on_ready([&](int) { ++ready; });
  model->loss_sum(batch).backward();
  EXPECT_EQ(ready, static_cast<int>(flat->slices().size()));
  const auto leaves = model->parameters(), expected = cast->parameters();
  for (const Slice& slice : flat->slices()) {
    const at::Tensor found = gradient_of(*flat, slice, leaves[slice.parameter]);
    EXPECT_EQ(flat->compute_weight(leaves[slice.parameter]).scalar_type(), at::kBFloat16);
    EXPECT_EQ(found.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::allclose(found, expected[slice.parameter].grad(), 1e-5, 1e-7))
        << model->named_parameters()[slice.parameter].key();
  }
}

/// One weight used twice: y = (x W) W.
class Tied : public Model {
 public:
  Tied() { weight_ = register_parameter("weight", at::randn({4, 4})); }
  Batch synthetic_batch(std::int64_t n, std::uint64_t, at::Device, at::ScalarType dtype) override {
    return {at::arange(n * 4, at::kFloat).view({n, 4}).to(dtype) / 8, {}, 1, 1};
  }
  at::Tensor forward(const Batch& batch) override {
    const auto weight = [&] { return gate_holder_->gate->compute_weight(weight_); };
    return batch.inputs.matmul(weight()).matmul(weight());
  }
  at::Tensor loss_sum(const Batch& batch) override { return forward(batch).sum().to(at::kFloat); }

 private:
  at::Tensor weight_;
};

TEST(FlatParameters, AWeightThatIsUsedTwiceGetsTheSumOnce) {
  Tied plain;
  const Batch batch = plain.synthetic_batch(2, 0, at::kCPU, at::kFloat);
  plain.loss_sum(batch).backward();
  const at::Tensor expected = plain.parameters()[0].grad();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    Tied model;
    {
      const at::NoGradGuard no_grad;
      at::Tensor(model.parameters()[0]).copy_(plain.parameters()[0]);
    }
    const auto flat = std::make_shared<FlatParameters>(model, order_of(model),
                                                       FlatLayout{1 << 20, 1 << 20, 0, dtype});
    model.set_gate(flat);
    int ready = 0;
    flat->set_on_ready([&](int) { ++ready; });
    model.loss_sum(model.synthetic_batch(2, 0, at::kCPU, dtype)).backward();
    EXPECT_EQ(ready, 1);
    const at::Tensor found = gradient_of(*flat, flat->slices()[0], model.parameters()[0]);
    EXPECT_LT((found - expected).norm().item<double>(),
              (dtype == at::kFloat ? 1e-6 : 0.05) * expected.norm().item<double>());
  }
}

/// Gradients by parameter, as autograd computes them.
std::vector<at::Tensor> plain_gradients(Model& model, const Batch& batch) {
  model.loss_sum(batch).backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& leaf : model.parameters()) {
    gradients.push_back(leaf.grad().clone());
    leaf.mutable_grad().reset();
  }
  return gradients;
}

double relative_difference(FlatParameters& flat, Model& model,
                           const std::vector<at::Tensor>& expected) {
  double squares = 0, error = 0;
  const auto leaves = model.parameters();
  for (const Slice& slice : flat.slices()) {
    const at::Tensor& wanted = expected[slice.parameter];
    squares += wanted.square().sum().item<double>();
    error +=
        (gradient_of(flat, slice, leaves[slice.parameter]) - wanted).square().sum().item<double>();
  }
  return std::sqrt(error / squares);
}

class SequenceModels : public ::testing::TestWithParam<const char*> {};

/// The embedding is used two or three times (source, target, output) and every matrix puts its
/// gradient itself; each parameter must be ready once, with the whole sum, also over micro-batches.
TEST_P(SequenceModels, PutTheGradientsThatAutogradComputes) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const std::int64_t micro_batch_size : {4, 1}) {
      torch::manual_seed(1);
      ModelOptions options{GetParam()};
      options.sequence_length = 8;
      const auto model = make_model(options);
      const Batch batch = model->synthetic_batch(4, 1, at::kCPU, dtype);
      if (dtype == at::kBFloat16) model->set_gate(std::make_shared<CastingGate>());
      const auto expected = plain_gradients(*model, batch);
      const auto flat = std::make_shared<FlatParameters>(*model, order_of(*model),
                                                         FlatLayout{100'000, 1'000, 0, dtype});
      model->set_gate(flat);
      for (int step = 0; step < 2; ++step) {  // the second must overwrite, not accumulate
        int ready = 0;
        flat->set_on_ready([&](int) { ++ready; });
        const auto micro_batches = split(batch, micro_batch_size);
        for (std::size_t i = 0; i < micro_batches.size(); ++i) {
          flat->begin_pass(i == 0, i + 1 == micro_batches.size());
          EXPECT_EQ(ready, 0);
          model->loss_sum(micro_batches[i]).backward();
        }
        EXPECT_EQ(ready, static_cast<int>(flat->slices().size()));
        EXPECT_LT(relative_difference(*flat, *model, expected), dtype == at::kFloat ? 1e-6 : 0.01);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(FlatParameters, SequenceModels,
                         ::testing::Values("transformer_tiny", "bert_tiny"),
                         [](const auto& info) { return std::string(info.param); });

TEST(FlatParameters, APassWithoutGradientsCountsForNothing) {
  torch::manual_seed(1);
  const auto model = make_model({"transformer_tiny"});
  const Batch batch = model->synthetic_batch(2, 1, at::kCPU, at::kFloat);
  const auto flat = std::make_shared<FlatParameters>(*model, order_of(*model), FlatLayout{});
  model->set_gate(flat);
  {
    const at::NoGradGuard no_grad;
    model->forward(batch);
  }
  int ready = 0;
  flat->set_on_ready([&](int) { ++ready; });
  model->loss_sum(batch).backward();
  EXPECT_EQ(ready, static_cast<int>(flat->slices().size()));
}

TEST(FlatParameters, FindsAWeightThatIsNotFinite) {
  const auto model = smallnet();
  FlatParameters flat(*model, order_of(*model), {});
  EXPECT_TRUE(flat.weights_are_finite());
  const at::NoGradGuard no_grad;
  const at::Tensor weight = model->parameters()[1];
  using Limits = std::numeric_limits<float>;
  for (const float wrong : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
    for (const std::int64_t place : {std::int64_t{0}, std::int64_t{7}, weight.numel() - 1}) {
      const at::Tensor right = weight[place].clone();
      weight[place] = wrong;
      EXPECT_FALSE(flat.weights_are_finite()) << wrong << " at " << place;
      weight[place] = right;
    }
  EXPECT_TRUE(flat.weights_are_finite());
}

TEST(FlatParameters, RefusesAnOrderThatIsNoPermutation) {
  const auto model = smallnet();
  auto order = order_of(*model);
  order[0] = order[1];
  EXPECT_THROW(FlatParameters(*model, order, {}), std::invalid_argument);
}

/// A parameter that no loss depends on.
class Idle : public Tied {
 public:
  Idle() { register_parameter("idle", at::ones({1})); }
};

TEST(GradientReadyOrder, NamesAParameterWithoutGradient) {
  Idle model;
  try {
    gradient_ready_order(model, at::kCPU);
    FAIL() << "accepted";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("idle"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace scalemark::flat_parameters_test
