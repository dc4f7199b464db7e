// FLOPs of backward passes against their closed forms, and the groups of names.
#include "models/operator_flops.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <functional>

namespace scalemark::operator_flops_test {
namespace {

thread_local std::int64_t counted_flops = 0, counted_depth = 0;

struct Call : at::ObserverContext {
  explicit Call(CountedCall counted) : call(counted) { ++counted_depth; }
  ~Call() override { --counted_depth; }
  CountedCall call;
};

/// Of the outermost counted operators of `body`.
template <typename F>
std::int64_t count(F body) {
  counted_flops = 0;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
            const CountedOperator* found = counted_depth > 0 ? nullptr : find_counted(call.name());
            return found ? std::make_unique<Call>(CountedCall(*found, call)) : nullptr;
          },
          [](const at::RecordFunction& call, at::ObserverContext* context) {
            if (const auto* one = dynamic_cast<Call*>(context))
              counted_flops += one->call.flops(call);
          })
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
  body();
  at::removeCallback(handle);
  return counted_flops;
}

at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes).set_requires_grad(true); }

TEST(OperatorFlops, AConvolutionsGradientsCostTheForwardPassEach) {
  const std::int64_t once = 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3);  // two groups, stride 2
  const at::Tensor weight = leaf({6, 2, 3, 3});
  for (const bool input_too : {false, true}) {
    const at::Tensor x = at::randn({2, 4, 8, 8}).set_requires_grad(input_too);
    at::Tensor y;
    EXPECT_EQ(count([&] { y = at::conv2d(x, weight, {}, 2, 1, 1, 2).sum(); }), once);
    EXPECT_EQ(count([&] { y.backward(); }), (input_too ? 2 : 1) * once);
  }
}

TEST(OperatorFlops, ATransposedConvolutionsToo) {
  const std::int64_t once = 2 * (2 * 3 * 4 * 4) * (5 * 2 * 2);
  const at::Tensor x = leaf({2, 3, 4, 4}), weight = leaf({3, 5, 2, 2});
  at::Tensor y;
  EXPECT_EQ(count([&] { y = at::conv_transpose2d(x, weight, {}, 2).sum(); }), once);
  EXPECT_EQ(count([&] { y.backward(); }), 2 * once);
}

TEST(OperatorFlops, AMatrixProductsGradientsAreProducts) {
  const at::Tensor x = leaf({4, 3}), weight = leaf({5, 3}), bias = leaf({5});
  at::Tensor y;
  EXPECT_EQ(count([&] { y = at::linear(x, weight, bias).sum(); }), 2 * 4 * 3 * 5);
  EXPECT_EQ(count([&] { y.backward(); }), 2 * (2 * 4 * 3 * 5));
  const at::Tensor a = leaf({2, 4, 3}), b = leaf({2, 3, 5});
  EXPECT_EQ(count([&] { y = at::bmm(a, b).sum(); }), 2 * 2 * 4 * 3 * 5);
  EXPECT_EQ(count([&] { y.backward(); }), 2 * (2 * 2 * 4 * 3 * 5));
}

TEST(OperatorFlops, AttentionsBackwardPassIsTwiceItsForwardPass) {
  const at::Tensor q = leaf({2, 3, 16, 8}), k = leaf({2, 3, 16, 8}), v = leaf({2, 3, 16, 8});
  const std::int64_t once = 2 * 2 * (2 * 3 * 16 * 16 * 8);
  at::Tensor y;
  EXPECT_EQ(count([&] { y = at::scaled_dot_product_attention(q, k, v).sum(); }), once);
  EXPECT_EQ(count([&] { y.backward(); }), 2 * once);
}

TEST(OperatorFlops, AttentionByTilesCountsAsLibTorchsDoes) {
  const at::Tensor q = at::zeros({2, 4, 16, 8}), k = at::zeros({2, 2, 40, 8});
  const std::array<const c10::IValue, 3> forward{q, k, k};
  const std::array<const c10::IValue, 4> backward{q, q, k, k};
  const std::int64_t once = 2 * (2 * 4 * 16 * 40 * 8);
  EXPECT_EQ(find_counted("scalemark::attention")->multiply_adds(forward) * q.numel(), once);
  EXPECT_EQ(find_counted("scalemark::attention_backward")->multiply_adds(backward), 2 * once);
}

TEST(OperatorFlops, GroupsOfNames) {
  using Group = OperatorGroup;
  for (const auto& [name, group] :
       {std::pair{"aten::conv2d", Group::convolution},
        {"aten::mkldnn_convolution", Group::convolution},
        {"aten::cudnn_convolution", Group::convolution},
        {"ConvolutionBackward0", Group::convolution},
        {"quantized::conv2d_relu", Group::convolution},
        {"aten::addmm", Group::matrix_product},
        {"AddmmBackward0", Group::matrix_product},
        {"quantized::linear_dynamic", Group::matrix_product},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", Group::matrix_product},
        {"aten::native_batch_norm_backward", Group::normalisation},
        {"NativeLayerNormBackward0", Group::normalisation},
        {"c10d::allreduce_", Group::communication},
        {"aten::copy_", Group::other},
        {"aten::upsample_linear1d", Group::other},
        {"aten::_convert_indices_from_csr_to_coo", Group::other}})
    EXPECT_EQ(group_of(name), group) << name;
}

}  // namespace
}  // namespace scalemark::operator_flops_test

// Each counted operator against its formula; what one calls within another counts once.
namespace scalemark::count_flops_test {
namespace {

/// A network that is one function of its inputs.
class Network : public Model {
 public:
  explicit Network(std::function<at::Tensor(const at::Tensor&)> body) : body_(std::move(body)) {}
  Batch synthetic_batch(std::int64_t, std::uint64_t, at::Device, at::ScalarType) override {
    return {};
  }
  at::Tensor forward(const Batch& batch) override { return body_(batch.inputs); }
  at::Tensor loss_sum(const Batch& batch) override { return forward(batch).sum(); }

 private:
  std::function<at::Tensor(const at::Tensor&)> body_;
};

std::int64_t count(at::IntArrayRef input, std::function<at::Tensor(const at::Tensor&)> body) {
  Network network(std::move(body));
  Batch batch;
  batch.inputs = at::randn(input);
  return count_forward_flops(network, batch);
}

TEST(CountFlops, MatrixProductsOfEveryKind) {
  const auto b = at::randn({3, 5});
  EXPECT_EQ(count({4, 3}, [&](auto& x) { return at::matmul(x, b); }), 2 * 4 * 3 * 5);
  EXPECT_EQ(count({4, 3}, [&](auto& x) { return at::mm(x, b); }), 2 * 4 * 3 * 5);
  EXPECT_EQ(count({4, 3}, [&](auto& x) { return at::addmm(at::zeros({5}), x, b); }), 2 * 4 * 3 * 5);
  EXPECT_EQ(count({2, 4, 3}, [&](auto& x) { return at::matmul(x, b); }), 2 * 2 * 4 * 3 * 5);
  EXPECT_EQ(count({2, 4, 3}, [&](auto& x) { return at::bmm(x, x.transpose(1, 2)); }),
            2 * 2 * 4 * 3 * 4);
  EXPECT_EQ(count({2, 4, 3}, [&](auto& x) { return at::linear(x, b.t().contiguous()); }),
            2 * 2 * 4 * 3 * 5);
  EXPECT_EQ(count({4, 3}, [&](auto& x) { return at::einsum("ij,jk->ik", {x, b}); }), 2 * 4 * 3 * 5);
}

TEST(CountFlops, Convolutions) {
  EXPECT_EQ(count({2, 3, 8, 8},
                  [](auto& x) {
                    return at::conv2d(x, at::randn({5, 3, 3, 3}), {}, 2, 1);
                  }),
            2 * (2 * 5 * 4 * 4) * (3 * 3 * 3));
  EXPECT_EQ(count({2, 4, 8},
                  [](auto& x) {
                    return at::conv1d(x, at::randn({6, 2, 3}), {}, 1, 1, 1, 2);  // two groups
                  }),
            2 * (2 * 6 * 8) * (2 * 3));
  EXPECT_EQ(count({2, 3, 4, 4},
                  [](auto& x) {
                    return at::conv_transpose2d(x, at::randn({3, 5, 2, 2}), {}, 2);
                  }),
            2 * (2 * 3 * 4 * 4) * (5 * 2 * 2));
}

TEST(CountFlops, AttentionOnceHoweverItIsComputed) {
  // [batch, heads, length, width]
  EXPECT_EQ(count({2, 3, 5, 4}, [](auto& x) { return at::scaled_dot_product_attention(x, x, x); }),
            2 * 2 * (2 * 3 * 5 * 5 * 4));
}

TEST(CountFlops, NothingElse) {
  EXPECT_EQ(count({4, 4}, [](auto& x) { return at::softmax(at::relu(x) * x + 1, -1); }), 0);
}

}  // namespace
}  // namespace scalemark::count_flops_test
