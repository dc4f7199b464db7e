// What the training loop asks of a real GPU beside training: memory statistics, pinned memory,
// kernels in a trace, frozen layers, the operators of --kernels triton.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "measure/clock.hpp"
#include "models/frozen.hpp"
#include "models/model.hpp"
#include "models/triton/operators.hpp"
#include "train/device_backend.hpp"
#include "train/trace/recorders.hpp"

namespace scalemark::device_gpu_test {
namespace {

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
    device = make_device_backend(Device::cuda, 0);
  }
  std::unique_ptr<DeviceBackend> device;
};

/// `preflight --pinning` asks, and makes no tensor. Alone in a process it is the first to ask:
/// --gtest_filter=Gpu.TellsItsMemory*
TEST_F(Gpu, TellsItsMemoryBeforeThereIsATensor) {
  device->reset_peak_memory();
  ASSERT_TRUE(device->peak_memory_bytes());
  EXPECT_GE(*device->peak_memory_bytes(), 0);
  EXPECT_GT(device->memory_left(1).value_or(0), 0);
  device->release_free_memory();
}

TEST_F(Gpu, PinnedTensorsKeepValuesAndStrides) {
  const at::Tensor host =
      at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast).to(at::kBFloat16);
  const at::Tensor pinned = device->pinned(host);
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_TRUE(at::equal(pinned, host));
  EXPECT_EQ(pinned.strides(), host.strides());
  const at::Tensor there = pinned.to(device->device(), /*non_blocking=*/true);
  device->synchronize();
  EXPECT_TRUE(at::equal(there.cpu(), host));
}

TEST_F(Gpu, ReadsAScalarAStepLate) {
  const auto reader = device->make_scalar_reader();
  const auto scalar = [&](float value) {
    return at::full({}, value, at::TensorOptions().device(device->device()));
  };
  EXPECT_FALSE(reader->exchange(scalar(1)));
  EXPECT_EQ(reader->exchange(scalar(2)), 1.);
  EXPECT_EQ(reader->finish(), 2.);
  reader->exchange(scalar(3));  // and goes while it is on its way
}

TEST_F(Gpu, KernelsHaveAPlaceOnTheClockOfTheHost) {
  const at::Tensor a = at::randn({512, 512}, at::TensorOptions().device(device->device()));
  at::mm(a, a);
  device->synchronize();
  RankTrace trace;
  KernelRecorder recorder(1000);
  const double begin = steady_seconds();
  for (int i = 0; i < 3; ++i) at::mm(a, a);
  device->synchronize();
  const double end = steady_seconds();
  recorder.take(trace);
  long kernels = 0;
  for (const Span& span : trace.spans) {
    kernels += trace.labels.at(span.label).category == "kernel";
    EXPECT_GT(span.begin, begin - 1);
    EXPECT_LT(span.end, end + 1);
  }
  EXPECT_GE(kernels, 3);
}

/// Biases, ReLU and the residual's addition by cuDNN within the convolution: as on the CPU.
TEST_F(Gpu, FrozenNetworksComputeWhatTheCpuComputes) {
  device->set_precision(Precision::fp32);
  for (const auto& [dtype, tolerance] : {std::pair{at::kFloat, 1e-4}, {at::kBFloat16, 3e-2}}) {
    torch::manual_seed(1);
    ModelOptions options;
    options.name = "resnet18";
    options.image_size = 64;
    options.num_classes = 10;
    const auto exact = make_model(options), fast = make_model(options);
    for (std::size_t i = 0; i < exact->parameters().size(); ++i)
      fast->parameters()[i].data().copy_(exact->parameters()[i]);
    fast->to(device->device());
    freeze(*exact, at::kFloat, /*fused=*/false);
    freeze(*fast, dtype, /*fused=*/true);
    const c10::InferenceMode inference;
    const Batch batch = exact->synthetic_batch(2, 1, at::kCPU, at::kFloat);
    Batch there = batch;
    there.inputs = batch.inputs.to(device->device(), dtype);
    const at::Tensor expected = exact->forward(batch);
    const at::Tensor found = fast->forward(there).to(at::kFloat).cpu();
    const double error = ((found - expected).abs().max() / expected.abs().max()).item<double>();
    EXPECT_LT(error, tolerance) << dtype;
  }
}

/// Each operator of --kernels triton with its gradients beside LibTorch's own of the same GPU.
TEST_F(Gpu, TritonKernelsComputeWhatLibTorchComputes) {
  if (compiled_kernels().empty()) GTEST_SKIP() << "this build has none (SCALEMARK_TRITON)";
  const at::TensorOptions fp32 = at::TensorOptions().device(device->device());
  constexpr std::int64_t width = 512;
  const at::Tensor labels = at::randint(0, width, {96}, fp32.dtype(at::kLong));
  const BatchNormTensors statistics{{}, {}, at::zeros({width}, fp32), at::ones({width}, fp32)};
  using Use = std::function<at::Tensor(const OperatorSet&, const std::vector<at::Tensor>&)>;
  const auto images = [](const at::Tensor& x) {  // [96, width] as channels_last images
    return x.view({6, 4, 4, width}).permute({0, 3, 1, 2});
  };
  const std::vector<Use> uses{
      [&](const OperatorSet& set, const auto& in) {
        BatchNormTensors layer = statistics;
        layer.weight = in[2];
        layer.bias = in[3];
        return set.batch_norm(images(in[0]), layer, {0.1, 1e-5, true}, Activation::relu,
                              images(in[1]));
      },
      [&](const OperatorSet& set, const auto& in) {
        return set.norm_of_sum(in[0], in[1], 0, in[2], in[3], 1e-5);
      },
      [&](const OperatorSet& set, const auto& in) {
        return set.cross_entropy(in[0] + in[1], labels, -100, 0.1) + (in[2] * in[3]).sum();
      },
  };
  for (const Use& use : uses) {
    const auto run = [&](const OperatorSet& set) {
      torch::manual_seed(3);
      std::vector<at::Tensor> in{at::randn({96, width}, fp32).to(at::kBFloat16),
                                 at::randn({96, width}, fp32).to(at::kBFloat16),
                                 at::rand({width}, fp32) + 0.5, at::randn({width}, fp32)};
      for (at::Tensor& x : in) x.set_requires_grad(true);
      std::vector<at::Tensor> found{use(set, in)};
      found[0].to(at::kFloat).square().sum().backward();
      for (const at::Tensor& x : in) found.push_back(x.grad());
      return found;
    };
    const auto wanted = run(torch_operators()), found = run(gpu_operators());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const at::Tensor away = (found[i].to(at::kFloat) - wanted[i].to(at::kFloat)).abs();
      EXPECT_LT(away.mean().item<double>(), 0.02 * wanted[i].abs().mean().item<double>()) << i;
    }
  }
}

/// Dropout draws otherwise than LibTorch, so the share that passes and its scale are looked at.
TEST_F(Gpu, TritonKernelsDropWhatTheyAreTold) {
  if (compiled_kernels().empty()) GTEST_SKIP() << "this build has none (SCALEMARK_TRITON)";
  const at::Tensor x = at::ones({1 << 20}, at::TensorOptions().device(device->device()))
                           .to(at::kBFloat16)
                           .set_requires_grad(true);
  const at::Tensor y = gpu_operators().relu_dropout(x, 0.25);
  y.sum().backward();
  EXPECT_NEAR(y.gt(0).to(at::kFloat).mean().item<double>(), 0.75, 0.005);
  EXPECT_NEAR(y.max().item<double>(), 4. / 3, 0.01);
  EXPECT_TRUE(at::equal(x.grad(), y));
}

}  // namespace
}  // namespace scalemark::device_gpu_test
