// What is around the step, on 1 to 4 ranks: input from the host, checkpoints, the largest batch.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "error.hpp"
#include "platform/tree.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "tests/train/wrapped_cpu.hpp"
#include "train/batch_search.hpp"
#include "train/inferencer.hpp"
#include "train/trainer.hpp"

namespace scalemark::around_mpi_test {
namespace {

namespace fs = std::filesystem;
using testing::small_config;
using testing::world;

Samples train(const RunConfig& config) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  return trainer.measure(world(), *communicator, nullptr);
}

/// Reproducible bit for bit: one thread, and sums in the same order.
TEST(HostInput, GivesTheSameLossesBitForBit) {
  for (const char* model : {"smallnet", "transformer_tiny"})
    for (const SyntheticData data : {SyntheticData::noise, SyntheticData::learnable})
      for (const std::int64_t micro : {4, 2}) {
        RunConfig config = small_config();
        config.model = model;
        config.data = data;
        config.micro_batch_size = micro;
        // More than the 16 batches of learnable.
        config.num_batches = data == SyntheticData::learnable ? 18 : 4;
        const Samples device = train(config);
        config.input = InputPlace::host;
        const Samples host = train(config);
        ASSERT_EQ(std::ssize(host.loss), config.num_batches);
        EXPECT_EQ(host.loss, device.loss) << model;
        EXPECT_EQ(device.input.bytes_per_step, 0);
        EXPECT_GT(host.input.bytes_per_step, 0);
        EXPECT_GT(host.input.copy_seconds, 0);
      }
}

TEST(HostInput, ServesForwardPassesToo) {
  RunConfig config = small_config();
  config.forward_only = true;
  config.data = SyntheticData::learnable;
  const Samples device = train(config);
  config.input = InputPlace::host;
  EXPECT_EQ(train(config).loss, device.loss);
}

TEST(Checkpoints, TheLastHoldsTheTrainersWeightsBitForBit) {
  test::Tree tree;  // of each rank; rank 0's is used
  RunConfig config = small_config();
  config.model = "resnet18";  // with running statistics
  config.image_size = 32;
  config.num_batches = 4;
  config.checkpoint_every = 2;
  config.checkpoint_dir = (tree.root() / "checkpoints").string();
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  auto trainer =
      std::make_unique<Trainer>(config, *device, world(), plan_batch(config, world().size()));
  world().agree_on([&] { trainer->open_checkpoints(world()); });
  const Samples samples = trainer->measure(world(), *communicator, nullptr);
  if (world().rank() != 0) {
    EXPECT_EQ(samples.checkpoints.every, 0);
    EXPECT_FALSE(fs::exists(*config.checkpoint_dir));
    return;
  }
  EXPECT_EQ(samples.checkpoints.every, 2);
  EXPECT_EQ(samples.checkpoints.write_seconds.size(), 2u);
  const fs::path last = fs::path(*config.checkpoint_dir) / "checkpoint-00000006.pt";
  ASSERT_TRUE(fs::exists(last));  // 2 warm-up steps and 4 measured ones
  EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(last)), samples.checkpoints.bytes);

  ModelOptions options{"resnet18", 32, 10, true};
  auto loaded = make_model(options);
  torch::load(loaded, last.string());
  const auto found = loaded->parameters();
  for (const Slice& slice : trainer->parameters().slices()) {
    const at::Tensor& leaf = found[static_cast<std::size_t>(slice.parameter)];
    const Bucket& bucket = trainer->parameters().buckets()[static_cast<std::size_t>(slice.bucket)];
    EXPECT_TRUE(
        at::equal(leaf, bucket.weights.as_strided(leaf.sizes(), leaf.strides(), slice.offset)));
  }
  double moved = 0;  // running means start as zero
  for (const auto& buffer : loaded->named_buffers())
    if (buffer.key().find("mean") != std::string::npos)
      moved += buffer.value().abs().sum().item<double>();
  EXPECT_GT(moved, 0);
  trainer.reset();
  EXPECT_TRUE(fs::exists(last));  // the folder was asked for
}

TEST(Checkpoints, AFolderThatCannotBeWrittenIsAgreedOn) {
  test::Tree tree;
  tree.file("file", "");
  RunConfig config = small_config();
  config.checkpoint_every = 1;
  config.checkpoint_dir = (tree.root() / "file" / "below").string();
  const auto device = make_device_backend(Device::cpu, 0);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  try {
    world().agree_on([&] { trainer.open_checkpoints(world()); });
    ADD_FAILURE() << "was not refused";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::result);
  }
}

TEST(Checkpoints, EveryRankWritesTheSameWholeState) {
  const std::string folder = world().broadcast(
      (fs::temp_directory_path() / ("checkpoints-" + std::to_string(getpid()))).string());
  RunConfig config = small_config();
  config.num_batches = 2;
  config.checkpoint_every = 2;
  config.checkpoint_dir = folder;
  config.checkpoint_writers = CheckpointWriters::rank;
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  {
    Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
    world().agree_on([&] { trainer.open_checkpoints(world()); });
    const Samples samples = trainer.measure(world(), *communicator, nullptr);
    EXPECT_EQ(samples.checkpoints.every, 2);
    EXPECT_EQ(samples.checkpoints.write_seconds.size(), 1u);
  }
  world().barrier();
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(names.size(), static_cast<std::size_t>(world().size()));
  const std::string mine = "checkpoint-00000004-rank" + std::to_string(world().rank()) + ".pt";
  EXPECT_TRUE(names.contains(mine)) << mine;
  EXPECT_EQ(fs::file_size(fs::path(folder) / mine),
            fs::file_size(fs::path(folder) / "checkpoint-00000004-rank0.pt"));
  world().barrier();
  if (world().rank() == 0) fs::remove_all(folder);
}

/// The CPU, with less memory than there is.
class SmallCpu : public testing::WrappedCpu {
 public:
  explicit SmallCpu(std::int64_t bytes) : bytes_(bytes) {}
  std::optional<std::int64_t> memory_left(int) const override { return bytes_; }

 private:
  std::int64_t bytes_;
};

constexpr std::int64_t kMebi = 1 << 20;

/// Rank 0 has half the memory of the others; each runs real steps until one fails.
BatchSearch search(const RunConfig& config, std::int64_t mebibytes) {
  SmallCpu device((world().rank() == 0 ? mebibytes : 2 * mebibytes) * kMebi);
  RankGroup alone = *world().split(world().rank());
  Trainer trainer(config, device, world(), {1, world().size(), 1});
  return find_largest_batch(device, world(),
                            [&](std::int64_t batch) { return trainer.try_batch(alone, batch); });
}

void expect_found(const BatchSearch& found) {
  EXPECT_EQ(found.limited_by, "memory");
  EXPECT_GT(found.largest, 1);
  std::int64_t too_large = 0;
  for (const BatchTrial& trial : found.tried) {
    EXPECT_EQ(trial.fits, trial.batch_size <= found.largest) << trial.batch_size;
    if (!trial.fits && (too_large == 0 || trial.batch_size < too_large))
      too_large = trial.batch_size;
  }
  ASSERT_GT(too_large, 0);
  EXPECT_TRUE(too_large - found.largest == 1 || 16 * (too_large - found.largest) <= too_large);
  for (const std::string& theirs : world().all_gather(std::to_string(found.largest)))
    EXPECT_EQ(theirs, std::to_string(found.largest));
}

TEST(LargestBatch, IsFoundAndMoreMemoryHoldsMore) {
  for (const char* model : {"smallnet", "transformer_tiny"}) {
    RunConfig config = small_config();
    config.model = model;
    const BatchSearch small = search(config, 48), large = search(config, 96);
    expect_found(small);
    expect_found(large);
    EXPECT_GT(large.largest, small.largest) << model;
    EXPECT_NEAR(static_cast<double>(small.limit_bytes.value_or(0)), 0.7 * 48 * kMebi, 1);
  }
}

TEST(LargestBatch, OfForwardPassesIsLarger) {
  RunConfig config = small_config();
  const BatchSearch training = search(config, 48);
  config.forward_only = true;
  const BatchSearch forward = search(config, 48);
  expect_found(forward);
  EXPECT_GT(forward.largest, training.largest);
}

TEST(LargestBatch, OfInference) {
  const RunConfig config = small_config();
  SmallCpu device(48 * kMebi);
  Inferencer inferencer(config, device, world(), 1);
  expect_found(find_largest_batch(device, world(),
                                  [&](std::int64_t batch) { return inferencer.try_batch(batch); }));
}

TEST(LargestBatch, NothingFitsIsAnErrorOfAllRanks) {
  RunConfig config = small_config();
  config.image_size = 512;
  EXPECT_THROW(search(config, 8), AgreedError);
}

TEST(LargestBatch, OtherErrorsAreNotTakenForALackOfMemory) {
  SmallCpu device(96 * kMebi);
  EXPECT_THROW(find_largest_batch(device, world(),
                                  [](std::int64_t batch) -> double {
                                    if (batch == 4 && world().rank() == 0)
                                      throw std::runtime_error("a bug");
                                    return 0;
                                  }),
               AgreedError);
}

TEST(LargestBatch, ErrorsOfAllocatorsAreKnown) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("shapes do not match")));
  // What CUDA's libraries call it, as LibTorch 2.11 words it.
  for (const char* words :
       {"CUDA out of memory. Tried to allocate 20.00 GiB.", "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "GET was unable to find an engine to execute this computation"})
    EXPECT_TRUE(is_out_of_memory(std::runtime_error(words))) << words;
  try {
    at::empty({std::int64_t{1} << 46}, at::kByte);
    ADD_FAILURE() << "70 TB were given";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
}

}  // namespace
}  // namespace scalemark::around_mpi_test
