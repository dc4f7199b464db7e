// What the operators of models/triton compute, and their gradients, against LibTorch's in float64.
// The kernels run in Triton's interpreter on the CPU: everything but the launch on a GPU is real.
#include "models/triton/operators.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace scalemark::triton_operators_test {
namespace {

namespace fs = std::filesystem;

constexpr double kBf16 = 1.0 / 128;  ///< the interpreter cuts to bf16, a GPU rounds

/// Hands calls to tests/models/triton/interpreter.py, tensors in files.
class Interpreter : public KernelLauncher {
 public:
  Interpreter() {
    folder_ = fs::temp_directory_path() / ("scalemark-kernels-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    const std::string answers = folder_ / "answers", source = SCALEMARK_SOURCE_DIR;
    if (mkfifo(answers.c_str(), 0600) != 0) throw std::runtime_error("no fifo in " + answers);
    const std::string command = "exec '" SCALEMARK_PYTHON "' '" + source +
                                "/tests/models/triton/interpreter.py' '" + source +
                                "/models/triton' '" + answers + "'";
    calls_ = popen(command.c_str(), "we");
    answers_.open(answers);  // waits until the other side has opened it, or ended
  }
  ~Interpreter() override {
    if (calls_) pclose(calls_);
    fs::remove_all(folder_);
  }

  bool reaches(const at::Tensor& x) const override { return x.is_cpu(); }
  std::int64_t programs() const override { return 6; }  // which then take several tiles each
  void launch(const KernelCall& call) const override {
    nlohmann::json line{{"kernel", call.name}, {"programs", call.programs}};
    std::map<void*, fs::path> files;  // a tensor that is given twice lies in one
    for (const auto& argument : call.arguments)
      line["arguments"].push_back(
          std::visit([&](const auto& a) { return put(a, files); }, argument));
    std::fputs((line.dump() + "\n").c_str(), calls_);
    std::fflush(calls_);
    std::string answer;
    if (!std::getline(answers_, answer) || answer != "ok")
      throw std::runtime_error("the interpreter failed on " + line.dump());
    for (const auto& argument : call.arguments)
      if (const auto* tensor = std::get_if<at::Tensor>(&argument)) {
        std::ifstream file(files.at(tensor->data_ptr()), std::ios::binary);
        file.read(static_cast<char*>(tensor->data_ptr()),
                  static_cast<std::streamsize>(tensor->nbytes()));
      }
    ++launches;
  }

  mutable int launches = 0;

 private:
  nlohmann::json put(const at::Tensor& tensor, std::map<void*, fs::path>& files) const {
    EXPECT_TRUE(tensor.is_non_overlapping_and_dense());
    fs::path& path = files[tensor.data_ptr()];
    if (path.empty()) {
      path = folder_ / std::to_string(files.size());
      std::ofstream(path, std::ios::binary)
          .write(static_cast<const char*>(tensor.data_ptr()),
                 static_cast<std::streamsize>(tensor.nbytes()));
    }
    const std::map<at::ScalarType, const char*> names{{at::kFloat, "torch.float32"},
                                                      {at::kBFloat16, "torch.bfloat16"},
                                                      {at::kLong, "torch.int64"}};
    return {
        {"file", path}, {"dtype", names.at(tensor.scalar_type())}, {"elements", tensor.numel()}};
  }
  nlohmann::json put(std::int64_t value, std::map<void*, fs::path>&) const { return value; }
  nlohmann::json put(float value, std::map<void*, fs::path>&) const { return value; }

  fs::path folder_;
  std::FILE* calls_ = nullptr;
  mutable std::ifstream answers_;
};

class TritonOperators : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::system("'" SCALEMARK_PYTHON "' -c 'import triton, torch' 2>/dev/null") != 0) return;
    interpreter = c10::make_intrusive<Interpreter>();
  }
  static void TearDownTestSuite() { interpreter.reset(); }
  void SetUp() override {
    if (!interpreter) GTEST_SKIP() << "no Triton beside " SCALEMARK_PYTHON;
    torch::manual_seed(1);
    operators = triton_operators(interpreter);
  }
  /// Returns how many kernels `f` has launched.
  template <typename F>
  int launched(F f) {
    const int before = interpreter->launches;
    f();
    return interpreter->launches - before;
  }

  static inline c10::intrusive_ptr<Interpreter> interpreter;
  std::unique_ptr<OperatorSet> operators;
};

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().requires_grad_(); }
at::Tensor bf16(at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16); }
at::Tensor images(at::IntArrayRef shape) {
  return (bf16(shape) * 2 + 3).contiguous(at::MemoryFormat::ChannelsLast);
}

void expect_near(const at::Tensor& found, const at::Tensor& wanted, double relative,
                 const char* what) {
  ASSERT_EQ(found.sizes(), wanted.sizes()) << what;
  const double largest = wanted.abs().max().item<double>();
  const double away = (found.to(at::kDouble) - wanted).abs().max().item<double>();
  EXPECT_LE(away, relative * largest) << what;
}

struct NormCase {
  std::vector<std::int64_t> shape;
  bool relu, residual;
};

TEST_F(TritonOperators, BatchNormIsThatOfFloat64) {
  const BatchNormRule rule{0.1, 1e-5, true};
  for (const NormCase& of :
       {NormCase{{3, 16, 5, 7}, false, false}, NormCase{{2, 80, 9, 9}, true, false},
        NormCase{{4, 64, 12, 12}, true, true}, NormCase{{1, 2048, 9, 8}, true, true}}) {
    const std::int64_t channels = of.shape[1];
    const at::Tensor x = leaf(images(of.shape)), weight = leaf(at::rand({channels}) + 0.5),
                     bias = leaf(at::randn({channels})), residual = leaf(images(of.shape)),
                     dy = images(of.shape) - 3;
    const BatchNormTensors layer{weight, bias, at::randn({channels}), at::rand({channels})};
    const BatchNormTensors wide{leaf(weight.to(at::kDouble)), leaf(bias.to(at::kDouble)),
                                layer.running_mean.to(at::kDouble),
                                layer.running_variance.to(at::kDouble)};
    const at::Tensor x_wide = leaf(x.to(at::kDouble)),
                     residual_wide = leaf(residual.to(at::kDouble));
    const Activation activation = of.relu ? Activation::relu : Activation::none;
    at::Tensor y;
    EXPECT_EQ(launched([&] {
                y = operators->batch_norm(x, layer, rule, activation,
                                          of.residual ? residual : at::Tensor());
                y.backward(dy);
              }),
              6);
    at::Tensor wanted = at::batch_norm(x_wide, wide.weight, wide.bias, wide.running_mean,
                                       wide.running_variance, true, 0.1, 1e-5, false);
    if (of.residual) wanted = wanted + residual_wide;
    // Where ReLU passes is taken from the result in bf16: next to zero a rounding decides.
    wanted = of.relu ? wanted * (y.detach() > 0) : wanted;
    wanted.backward(dy.to(at::kDouble));
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
    expect_near(y, wanted.detach(), kBf16, "y");
    expect_near(layer.running_mean, wide.running_mean, 1e-5, "running mean");
    expect_near(layer.running_variance, wide.running_variance, 1e-5, "running variance");
    expect_near(x.grad(), x_wide.grad(), kBf16, "dx");
    expect_near(weight.grad(), wide.weight.grad(), 1e-4, "dweight");
    expect_near(bias.grad(), wide.bias.grad(), 1e-4, "dbias");
    if (of.residual) expect_near(residual.grad(), residual_wide.grad(), kBf16, "dresidual");
  }
}

TEST_F(TritonOperators, BatchNormOfChannelsFarFromZeroKeepsItsVariance) {
  const at::Tensor x = (at::randn({2, 16, 40, 40}) * 0.5 + 100)
                           .to(at::kBFloat16)
                           .contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor ones = at::ones({16});
  const BatchNormTensors layer{ones, at::zeros({16}), at::zeros({16}), at::ones({16})};
  operators->batch_norm(x, layer, {1.0, 1e-5, true}, Activation::none, {});
  const at::Tensor wide = x.to(at::kDouble).transpose(0, 1).reshape({16, -1});
  expect_near(layer.running_variance, wide.var(1), 1e-4, "running variance");
}

TEST_F(TritonOperators, NormOfASumIsThatOfFloat64) {
  for (const std::int64_t width : {16, 512, 1024, 720}) {
    const at::Tensor x = leaf(bf16({3, 5, width})), branch = leaf(bf16({3, 5, width})),
                     weight = leaf(at::rand({width}) + 0.5), bias = leaf(at::randn({width})),
                     dy = bf16({3, 5, width});
    const auto wide = [](const at::Tensor& of) { return leaf(of.to(at::kDouble)); };
    const at::Tensor x_wide = wide(x), branch_wide = wide(branch), weight_wide = wide(weight),
                     bias_wide = wide(bias);
    at::Tensor y;
    EXPECT_EQ(launched([&] {
                y = operators->norm_of_sum(x, branch, 0, weight, bias, 1e-5);
                y.backward(dy);
              }),
              3);
    const at::Tensor wanted =
        at::layer_norm(x_wide + branch_wide, {width}, weight_wide, bias_wide, 1e-5);
    wanted.backward(dy.to(at::kDouble));
    expect_near(y, wanted.detach(), 2 * kBf16, "y");  // the sum is cut too
    expect_near(x.grad(), x_wide.grad(), 2 * kBf16, "dx");
    expect_near(branch.grad(), branch_wide.grad(), 2 * kBf16, "dbranch");
    expect_near(weight.grad(), weight_wide.grad(), kBf16, "dweight");
    expect_near(bias.grad(), bias_wide.grad(), 1e-4, "dbias");
  }
}

TEST_F(TritonOperators, DropoutOfABranchPassesTheSameElementsBothWays) {
  constexpr std::int64_t width = 1024;
  constexpr double probability = 0.25;
  const at::Tensor x = leaf(at::zeros({64, width}, at::kBFloat16)),
                   branch = leaf(at::rand({64, width}).add(1).to(at::kBFloat16)),
                   weight = leaf(at::ones({width})), bias = leaf(at::zeros({width}));
  const at::Tensor y = operators->norm_of_sum(x, branch, probability, weight, bias, 1e-5);
  y.backward(bf16({64, width}));
  // Without what was dropped a sum is zero, the lowest of a row in which all others are positive.
  const at::Tensor dropped = y.to(at::kFloat) == std::get<0>(y.to(at::kFloat).min(1, true));
  const double share = dropped.to(at::kFloat).mean().item<double>();
  EXPECT_NEAR(share, probability, 0.01);
  EXPECT_EQ(branch.grad().masked_select(dropped).abs().max().item<double>(), 0);
  const at::Tensor passed = x.grad().to(at::kDouble) / (1 - probability);
  expect_near(branch.grad(), passed.masked_fill(dropped, 0), 2 * kBf16, "dbranch");
  const at::Tensor kept =
      branch.detach().to(at::kDouble).masked_fill(dropped, 0) / (1 - probability);
  expect_near(y, at::layer_norm(kept, {width}, {}, {}, 1e-5), 2 * kBf16, "y");
  const at::Tensor again = operators->norm_of_sum(x, branch, probability, weight, bias, 1e-5);
  EXPECT_FALSE(at::equal(again, y)) << "every call draws anew";
}

TEST_F(TritonOperators, DroppedReluPassesTheSameElementsBothWays) {
  constexpr double probability = 0.4;
  const at::Tensor x = leaf(bf16({30, 1008})), dy = at::ones({30, 1008}, at::kBFloat16);
  const at::Tensor y = operators->relu_dropout(x, probability);
  y.backward(dy);
  const at::Tensor passed = y.detach() > 0, positive = x.detach() > 0;
  EXPECT_EQ((passed.logical_and(positive.logical_not())).sum().item<std::int64_t>(), 0);
  EXPECT_NEAR(passed.sum().item<double>() / positive.sum().item<double>(), 1 - probability, 0.015);
  const at::Tensor scale = passed.to(at::kDouble) / (1 - probability);
  expect_near(y, x.detach().to(at::kDouble) * scale, kBf16, "y");
  expect_near(x.grad(), scale, kBf16, "dx");
}

TEST_F(TritonOperators, CrossEntropyIsThatOfFloat64AndItsGradientLiesWhereTheLogitsWere) {
  constexpr std::int64_t ignored = -100;
  for (const std::int64_t classes : {208, 1024, 5008})
    for (const double smoothing : {0.0, 0.1}) {
      at::Tensor logits = (4 * at::randn({5, classes})).to(at::kBFloat16);
      logits[3] = (300 * at::randn({classes})).to(at::kBFloat16);  // exponentials beyond fp32
      const at::Tensor labels =
          at::tensor({std::int64_t{0}, classes - 1, ignored, std::int64_t{7}, std::int64_t{7}});
      const at::Tensor wide = leaf(logits.to(at::kDouble)), x = leaf(logits);
      const at::Tensor loss = operators->cross_entropy(x, labels, ignored, smoothing);
      const at::Tensor wanted =
          at::cross_entropy_loss(wide, labels, {}, at::Reduction::Sum, ignored, smoothing);
      expect_near(loss.detach(), wanted.detach(), 1e-5, "loss");
      (loss * 0.25).backward();
      (wanted * 0.25).backward();
      expect_near(x.grad(), wide.grad(), kBf16, "gradient");
      EXPECT_EQ(x.grad()[2].abs().max().item<double>(), 0) << "of an ignored row";
    }
}

TEST_F(TritonOperators, WhatDoesNotSuitIsLeftToLibTorch) {
  const at::Tensor odd = bf16({4, 1001}), fp32 = at::randn({4, 1024});
  const at::Tensor labels = at::zeros({4}, at::kLong), width = at::ones({1040});
  const BatchNormTensors layer{at::ones({16}), at::zeros({16}), at::zeros({16}), at::ones({16})};
  EXPECT_EQ(launched([&] {
              operators->cross_entropy(odd, labels, -100, 0);
              operators->cross_entropy(fp32, labels, -100, 0);
              operators->norm_of_sum(bf16({2, 1040}), bf16({2, 1040}), 0, width, width, 1e-5);
              operators->norm_of_sum(bf16({2, 1040}), {}, 0, width, width, 1e-5);
              operators->norm_of_sum(bf16({2, 16}), {}, 0, width.slice(0, 0, 16),
                                     width.slice(0, 0, 16), 1e-5);
              operators->relu_dropout(fp32, 0.1);
              operators->relu_dropout(bf16({3, 5}), 0.1);
              operators->batch_norm(images({2, 16, 4, 4}), layer, {0.1, 1e-5, false},
                                    Activation::none, {});
              operators->batch_norm(images({2, 16, 4, 4}).contiguous(), layer, {0.1, 1e-5, true},
                                    Activation::none, {});
            }),
            0);
}

}  // namespace
}  // namespace scalemark::triton_operators_test
