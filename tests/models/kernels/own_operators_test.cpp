// Every kernel of our own is reached through OperatorSet alone: the set of LibTorch's operators
// runs none of them, and a file of models/kernels/ that this table lacks fails.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "models/kernels/kernels.hpp"
#include "models/operator_set.hpp"
#include "tests/models/gradient_taker.hpp"
#include "tests/models/recorded_operators.hpp"

namespace scalemark::own_operators_test {
namespace {

struct Kernel {
  std::string file;
  std::string recorded;  ///< part of the name of what runs
  std::function<void(const OperatorSet&)> use;
  bool here = true;  ///< whether this processor and build are those it is for
};

at::Tensor images(std::int64_t channels, std::int64_t size) {
  return at::randn({2, channels, size, size}).contiguous(at::MemoryFormat::ChannelsLast);
}

/// A product of 256 rows, and its way back.
void use_linear(const OperatorSet& operators, Activation activation = Activation::none) {
  const auto gate = std::make_shared<GateHolder>();
  gate->gate = std::make_shared<testing::GradientTaker>();
  const at::Tensor x = at::randn({256, halves(activation) ? 2048 : 1024}).set_requires_grad(true);
  const at::Tensor leaf = at::randn({1024, 1024}).set_requires_grad(true);
  operators.linear(x, leaf, {}, gate, activation).sum().backward();
}

/// Gradients that arrive in bf16 in a place that is fp32.
class WideTaker : public ParameterGate {
 public:
  bool takes_gradient(const at::Tensor&) override { return true; }
  void put_gradient(const at::Tensor&, const GradientWriter& write) override {
    at::Tensor place = at::zeros({1024, 1024});
    write(place, false);
  }
};

void use_narrow_linear(const OperatorSet& operators) {
  const auto gate = std::make_shared<GateHolder>();
  gate->gate = std::make_shared<WideTaker>();
  const auto narrow = [](std::int64_t rows) {
    return at::randn({rows, 1024}).to(at::kBFloat16).set_requires_grad(true);
  };
  operators.linear(narrow(64), narrow(1024), {}, gate).sum().backward();
}

void use_adam(const OperatorSet& operators) {
  const auto made = [] { return at::ones({100}); };
  const AdamStep step = operators.adam_step();
  if (step) step({made(), made(), made(), made(), {}}, {.1f, .1f, 0, 1, .1f, 1, 1e-6f});
}

void use_attention(const OperatorSet& operators) {
  const at::Tensor x = at::randn({1, 2, 8, 16});
  operators.attention({x, x, x, /*causal=*/true}, 0.1);
}

void use_attention_by_products(const OperatorSet& operators) {
  const at::Tensor x = at::randn({1, 2, 8, 16}).to(at::kBFloat16).set_requires_grad(true);
  operators.attention({x, x, x, /*causal=*/true}, 0).sum().backward();
}

void use_attention_by_tiles(const OperatorSet& operators) {
  const at::Tensor x = at::randn({8, 2, 32, 32}).to(at::kBFloat16);
  operators.attention({x, x, x, /*causal=*/true}, 0);
}

void use_batch_norm(const OperatorSet& operators) {
  const auto of_channels = [](double value) { return at::full({8}, value); };
  operators.batch_norm(images(8, 4),
                       {of_channels(1), of_channels(0), of_channels(0), of_channels(1)},
                       {0.1, 1e-5, /*training=*/true}, Activation::relu, {});
}

void use_convolution(const OperatorSet& operators) {
  const std::vector<std::int64_t> one(2, 1);
  const at::Tensor weight = at::randn({64, 64, 3, 3}), x = images(64, 32);
  operators.conv2d(x, weight, {}, one, one, Activation::relu);
  const auto fixed = operators.fixed_convolution(x, weight, one, one);
  if (fixed) (*fixed)(x, {}, /*relu=*/true);
}

void use_convolution_in_training(const OperatorSet& operators) {
  const at::Tensor weight = at::randn({256, 256, 1, 1}).set_requires_grad(true);
  const std::vector<std::int64_t> one(2, 1), zero(2, 0);
  operators.conv2d(images(256, 32), weight, {}, one, zero, Activation::relu).sum().backward();
}

void use_shares(const OperatorSet& operators) {
  operators.in_shares(at::zeros({4, 2}), [](const at::Tensor& some) { return some + 1; });
}

std::vector<Kernel> kernels() {
#if defined(__SSE2__)
  constexpr bool widens = true;
#else
  constexpr bool widens = false;
#endif
#if defined(_OPENMP)
  constexpr bool shares = true;
#else
  constexpr bool shares = false;
#endif
  return {
      {"updates", "scalemark::adam", use_adam},
      {"attention", "scalemark::dropped_softmax", use_attention},
      {"attention", "scalemark::score_gradients", use_attention_by_products},
      {"batch_norm", "scalemark::batch_norm", use_batch_norm},
      {"convolution", "scalemark::conv2d_weight_gradient", use_convolution_in_training,
       !has_avx512()},
      {"cross_entropy", "scalemark::cross_entropy",
       [](const OperatorSet& operators) {
         operators.cross_entropy(at::randn({4, 10}), at::zeros({4}, at::kLong), -100, 0.1);
       }},
      {"dropout", "scalemark::dropout",
       [](const OperatorSet& operators) {
         operators.dropout(at::ones({100}), 0.5);
         operators.relu_dropout(at::ones({100}), 0.5);
       }},
      {"activations", "scalemark::gelu",
       [](const OperatorSet& operators) { use_linear(operators, Activation::gelu); }},
      {"activations", "scalemark::gelu_tanh",
       [](const OperatorSet& operators) { use_linear(operators, Activation::gelu_tanh); }},
      {"activations", "scalemark::swiglu",
       [](const OperatorSet& operators) { use_linear(operators, Activation::swiglu); }},
      {"linear", "Product", [](const OperatorSet& operators) { use_linear(operators); }},
      {"max_pool", "scalemark::max_pool2d",
       [](const OperatorSet& operators) {
         operators.max_pool(images(8, 8), {3, 2, 1});
       }},
      {"products", "scalemark::mm", [](const OperatorSet& operators) { use_linear(operators); },
       cuts_products()},
      {"norms", "scalemark::rms_norm",
       [](const OperatorSet& operators) {
         operators.rms_norm(at::ones({4, 8}), at::ones({8}), 1e-5);
       }},
      {"attention", "scalemark::divided_heads",
       [](const OperatorSet& operators) {
         operators.divided_heads(at::ones({1, 2, 3, 4}), 1, {at::ones({2, 2}), at::zeros({2, 2})});
       }},
      {"updates", "scalemark::add_rows",
       [](const OperatorSet& operators) {
         operators.add_rows(at::zeros({4, 2}), at::zeros({3}, at::kLong), at::ones({3, 2}));
       }},
      {"own_operators", "scalemark::in_shares", use_shares, shares},
      {"updates", "scalemark::norm",
       [](const OperatorSet& operators) { operators.norm(at::ones({10})); }},
      {"linear", "scalemark::widen", use_narrow_linear, widens},
      {"tile_attention", "scalemark::attention", use_attention_by_tiles, has_pair_products()},
      {"tile_products", "scalemark::mm", use_narrow_linear, has_tiles()},
      {"winograd", "scalemark::conv2d", use_convolution},
  };
}

/// Two threads, for which shares and pieces are made.
class OwnOperators : public ::testing::Test {
 protected:
  OwnOperators() { at::set_num_threads(2); }
  ~OwnOperators() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

TEST_F(OwnOperators, RunWhereTheyAreAskedForAndNowhereElse) {
  for (const Kernel& kernel : kernels()) {
    const auto recorded = [&](const OperatorSet& operators) {
      const RecordedOperators record;
      kernel.use(operators);
      return record.own();
    };
    const auto found = recorded(*own_operators());
    const bool ran = std::ranges::any_of(found, [&](const std::string& name) {
      return name.find(kernel.recorded) != std::string::npos;
    });
    EXPECT_EQ(ran, kernel.here) << kernel.file << ": " << kernel.recorded;
    EXPECT_TRUE(recorded(torch_operators()).empty()) << kernel.file;
  }
}

TEST_F(OwnOperators, AreAllInTheTable) {
  std::set<std::string> files, told;
  for (const auto& entry :
       std::filesystem::directory_iterator(SCALEMARK_SOURCE_DIR "/models/kernels")) {
    if (entry.path().extension() == ".cpp") files.insert(entry.path().stem());
  }
  for (const Kernel& kernel : kernels()) told.insert(kernel.file);
  EXPECT_EQ(files, told) << "each file of models/kernels/ has a row here that uses it";
}

}  // namespace
}  // namespace scalemark::own_operators_test
