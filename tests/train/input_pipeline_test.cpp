// --input host: every step gets its own batch, whole, while the next one is on its way.
#include "train/input_pipeline.hpp"

#include <gtest/gtest.h>

#include "measure/clock.hpp"

namespace scalemark::input_pipeline_test {
namespace {

struct Prepared {
  std::vector<Batch> batches;
  std::vector<std::vector<Batch>> micro_batches;
};

Prepared prepare(const std::string& name, std::int64_t count, std::int64_t micro_batch_size) {
  torch::manual_seed(1);
  ModelOptions options{name, 32, 10, true};
  options.sequence_length = 8;
  const auto model = make_model(options);
  Prepared made;
  for (std::int64_t i = 0; i < count; ++i) {
    made.batches.push_back(model->learnable_batch({8 * i, 8}, 1, at::kCPU, at::kFloat));
    made.batches.back().loss_count += static_cast<double>(i);
    made.micro_batches.push_back(split(made.batches.back(), micro_batch_size));
  }
  return made;
}

void expect_equal(const std::vector<Batch>& found, const std::vector<Batch>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto mine = tensors_of(found[i]), theirs = tensors_of(expected[i]);
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t t = 0; t < mine.size(); ++t) {
      EXPECT_TRUE(at::equal(mine[t], theirs[t]));
      EXPECT_EQ(mine[t].strides(), theirs[t].strides());
      EXPECT_NE(mine[t].const_data_ptr(), theirs[t].const_data_ptr()) << "no copy was made";
    }
    EXPECT_EQ(found[i].units, expected[i].units);
    EXPECT_EQ(found[i].loss_count, expected[i].loss_count);
  }
}

class HostInput : public ::testing::TestWithParam<std::string> {};

TEST_P(HostInput, BringsTheBatchesInTurn) {
  const auto device = make_device_backend(Device::cpu, 0);
  for (const std::int64_t count : {1, 2, 3, 16}) {
    const Prepared made = prepare(GetParam(), count, 4);
    const auto input =
        make_input_pipeline(InputPlace::host, *device, made.batches, made.micro_batches);
    for (long step = 0; step < 40; ++step)
      expect_equal(input->take(step), made.micro_batches[static_cast<std::size_t>(step % count)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HostInput, ::testing::Values("smallnet", "transformer_tiny"),
                         [](const auto& info) { return info.param; });

TEST(HostInput, ABatchStaysWhileItsStepComputes) {
  const auto device = make_device_backend(Device::cpu, 0);
  const Prepared made = prepare("smallnet", 16, 8);
  const auto input =
      make_input_pipeline(InputPlace::host, *device, made.batches, made.micro_batches);
  for (long step = 0; step < 16; ++step) {
    const Batch batch = input->take(step).front();
    input->samples();  // whatever the helper does meanwhile
    expect_equal({batch}, made.micro_batches[static_cast<std::size_t>(step)]);
  }
}

TEST(HostInput, CountsBytesAndSecondsSinceTheRestart) {
  const auto device = make_device_backend(Device::cpu, 0);
  const Prepared made = prepare("smallnet", 2, 8);
  const auto input =
      make_input_pipeline(InputPlace::host, *device, made.batches, made.micro_batches);
  const double start = steady_seconds();
  for (long step = 0; step < 4; ++step) input->take(step);
  const InputSamples samples = input->samples();
  EXPECT_EQ(samples.place, InputPlace::host);
  EXPECT_EQ(samples.bytes_per_step, 8 * (3 * 32 * 32 * 4 + 8));
  EXPECT_GT(samples.copy_seconds, 0);
  EXPECT_GT(samples.wait_seconds, 0);
  EXPECT_LT(samples.wait_seconds, steady_seconds() - start);
  input->restart();
  EXPECT_EQ(input->samples().copy_seconds, 0);
  EXPECT_EQ(input->samples().wait_seconds, 0);
  input->take(4);
  EXPECT_GT(input->samples().copy_seconds, 0);
}

TEST(DeviceInput, HandsOutTheBatchesThemselves) {
  const auto device = make_device_backend(Device::cpu, 0);
  const Prepared made = prepare("smallnet", 3, 4);
  const auto input =
      make_input_pipeline(InputPlace::device, *device, made.batches, made.micro_batches);
  for (long step = 0; step < 7; ++step)
    EXPECT_EQ(&input->take(step), &made.micro_batches[static_cast<std::size_t>(step % 3)]);
  EXPECT_EQ(input->samples().bytes_per_step, 0);
}

}  // namespace
}  // namespace scalemark::input_pipeline_test
