// What the training loop asks of a real GPU beside training: memory statistics, pinned memory,
// kernels in a trace, frozen layers.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include "measure/clock.hpp"
#include "models/frozen.hpp"
#include "models/model.hpp"
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

}  // namespace
}  // namespace scalemark::device_gpu_test
