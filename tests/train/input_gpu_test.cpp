// Batches copied to a GPU while it computes: each step gets its own.
#include <gtest/gtest.h>

#include "train/input_pipeline.hpp"

namespace scalemark::input_gpu_test {
namespace {

TEST(GpuInput, BringsTheBatchesInTurn) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  const auto device = make_device_backend(Device::cuda, 0);
  ModelOptions options;
  options.name = "smallnet";
  options.image_size = 32;
  options.num_classes = 10;
  const auto model = make_model(options);
  std::vector<Batch> batches;
  std::vector<std::vector<Batch>> micro_batches;
  for (std::int64_t i = 0; i < 5; ++i) {
    batches.push_back(model->learnable_batch({512 * i, 512}, 1, at::kCPU, at::kFloat));
    pin(batches.back(), *device);
    micro_batches.push_back(split(batches.back(), 256));
  }
  const auto input = make_input_pipeline(InputPlace::host, *device, batches, micro_batches);
  std::vector<at::Tensor> equal;
  for (long step = 0; step < 50; ++step) {
    const std::vector<Batch>& found = input->take(step);
    // Work that still reads the batch when the next copy is asked for.
    at::Tensor busy = found[0].inputs;
    for (int i = 0; i < 20; ++i) busy = busy * 1;
    const Batch& expected = micro_batches[static_cast<std::size_t>(step % 5)][1];
    EXPECT_TRUE(found[1].inputs.is_cuda());
    equal.push_back((found[1].inputs == expected.inputs.to(at::kCUDA)).all() &
                    (found[1].targets == expected.targets.to(at::kCUDA)).all());
  }
  device->synchronize();
  for (const at::Tensor& step : equal) EXPECT_TRUE(step.item<bool>());
  EXPECT_GT(input->samples().copy_seconds, 0);
}

}  // namespace
}  // namespace scalemark::input_gpu_test
