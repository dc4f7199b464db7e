// Each counted operator against its formula; what one calls within another counts once.
#include "models/count_flops.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

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
