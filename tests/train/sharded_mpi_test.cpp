// --shard and --shard_ranks on 1 to 4 ranks: the losses and weights of undivided training, what is
// sent against its closed form, and that memory of whole tensors is freed.
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "analysis/run_plan.hpp"
#include "error.hpp"
#include "measure/bus_bandwidth.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "train/checkpoint.hpp"
#include "train/trainer.hpp"

namespace scalemark::sharded_mpi_test {
namespace {

using testing::bytes_of;
using testing::small_config;
using testing::world;

constexpr Shard kShards[] = {Shard::optimizer, Shard::gradients, Shard::parameters};
constexpr Shard kParameters[] = {Shard::parameters};

struct Trained {
  Samples samples;
  std::map<int, at::Tensor> weights;  ///< fp32, by parameter
  StepTraffic traffic;
};

/// The weights of every parameter, put together from the blocks of the first group of ranks, whose
/// bits all groups must have.
std::map<int, at::Tensor> whole_weights(FlatParameters& parameters) {
  std::map<int, at::Tensor> weights;
  const auto ranks = static_cast<std::size_t>(parameters.division().ranks);
  for (const Bucket& bucket : parameters.buckets()) {
    const auto blocks = world().all_gather(bytes_of(bucket.weights.contiguous()));
    std::string bytes;
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      if (rank < ranks) bytes += blocks[rank];
      EXPECT_EQ(blocks[rank], blocks[rank % ranks]) << "rank " << rank;
    }
    const at::Tensor whole = at::from_blob(bytes.data(), {bucket.whole.count}, at::kFloat).clone();
    for (const Slice& slice : bucket.whole.slices)
      weights[slice.parameter] = whole.narrow(0, slice.offset, slice.count);
  }
  return weights;
}

Trained train(RunConfig config, Shard shard, CommunicatorKind kind = CommunicatorKind::mpi) {
  config.shard = shard;
  const auto device = make_device_backend(Device::cpu, 0);
  const auto ranks = static_cast<int>(ranks_of_shards(config, world().size()));
  const auto communicator = make_shard_communicator(kind, world(), -1, config.wire_dtype, ranks);
  BatchPlan plan = plan_batch(config, world().size());
  if (config.micro_batch_size) plan.micro_batch_size = *config.micro_batch_size;
  Trainer trainer(config, *device, world(), plan);
  trainer.check_data(*communicator, world().rank());
  Trained trained{trainer.measure(world(), *communicator, nullptr), {}, {}};
  trainer.check_data(*communicator, world().rank(), CheckTime::after);
  trained.weights = whole_weights(trainer.parameters());
  trained.traffic = trainer.last_traffic();
  return trained;
}

void expect_near(const Trained& found, const Trained& right, double most) {
  ASSERT_EQ(found.weights.size(), right.weights.size());
  for (const auto& [parameter, weights] : right.weights) {
    const double off = (found.weights.at(parameter) - weights).abs().max().item<double>();
    EXPECT_LE(off, most * std::max(weights.abs().max().item<double>(), 0.01))
        << "parameter " << parameter;
  }
  ASSERT_EQ(found.samples.loss.size(), right.samples.loss.size());
  for (std::size_t i = 0; i < right.samples.loss.size(); ++i)
    EXPECT_NEAR(found.samples.loss[i], right.samples.loss[i], most) << "step " << i;
}

/// Of fp32 sums in another order. Adam divides by the gradient's own size, so that where it is next
/// to nothing its sign, and the step, may differ.
constexpr double kRounding = 5e-4;

/// Bit for bit where the order of sums is the same.
void expect_as_undivided(RunConfig config) {
  const bool same_order = config.wire_dtype != WireDtype::fp32 || world().size() <= 2;
  if (!same_order) config.optimizer = Optimizer::momentum;
  const Trained right = train(config, Shard::none);
  for (const Shard shard : kShards) {
    SCOPED_TRACE(to_string(shard));
    expect_near(train(config, shard), right, same_order ? 0 : kRounding);
  }
}

/// Of types that many processors emulate.
constexpr std::int64_t kFewSteps = 4;

RunConfig of_model(const char* model, Optimizer optimizer) {
  RunConfig config = small_config();
  config.model = model;
  config.num_batches = 10;
  config.num_warmup_batches = 1;
  config.optimizer = optimizer;
  config.init_learning_rate = optimizer == Optimizer::momentum ? 0.02 : 1e-3;
  return config;
}

TEST(Sharded, TrainsAsUndivided) {
  for (const auto& [model, optimizer] : {std::pair{"smallnet", Optimizer::momentum},
                                         {"llama_tiny", Optimizer::adamw},
                                         {"transformer_tiny", Optimizer::adam}}) {
    SCOPED_TRACE(model);
    expect_as_undivided(of_model(model, optimizer));
  }
}

TEST(Sharded, TrainsAsUndividedInTwoByteTypes) {
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  config.num_batches = kFewSteps;
  config.precision = Precision::bf16;
  if (world().size() <= 2) expect_as_undivided(config);
  config.wire_dtype = WireDtype::bf16;
  expect_as_undivided(config);
  config.precision = Precision::fp16;
  config.wire_dtype = WireDtype::fp16;
  expect_as_undivided(config);
}

TEST(Sharded, AddsUpMicroBatchesAndClips) {
  RunConfig config = of_model("bert_tiny", Optimizer::momentum);
  config.micro_batch_size = 2;
  const Trained right = train(config, Shard::none);
  for (const Shard shard : kShards) expect_near(train(config, shard), right, kRounding);
  config.micro_batch_size.reset();
  config.clip_norm = 0.5;
  const Trained clipped = train(config, Shard::none);
  for (const Shard shard : kShards) expect_near(train(config, shard), clipped, kRounding);
}

TEST(Sharded, TakesNormsOfWholeParameters) {
  for (const Optimizer rule : {Optimizer::lamb, Optimizer::lars}) {
    SCOPED_TRACE(to_string(rule));
    const RunConfig config = of_model("bert_tiny", rule);
    const Trained right = train(config, Shard::none);
    for (const Shard shard : kShards) expect_near(train(config, shard), right, kRounding);
  }
}

TEST(Sharded, RecomputesToTheSameBits) {
  for (const char* model : {"llama_tiny", "transformer_tiny"}) {
    SCOPED_TRACE(model);
    RunConfig config = of_model(model, Optimizer::adamw);
    config.dropout = 0.1;
    const Trained right = train(config, Shard::none);
    config.recompute = Recompute::layer;
    expect_near(train(config, Shard::none), right, 0);
    if (world().size() <= 2) expect_near(train(config, Shard::parameters), right, 0);
  }
}

TEST(Sharded, SumsAfterTheBackwardPassToo) {
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  config.overlap = Overlap::none;
  expect_as_undivided(config);
}

TEST(Sharded, TrainsWithoutCommunication) {
  for (const Shard shard : kShards) {
    const Trained alone =
        train(of_model("llama_tiny", Optimizer::adamw), shard, CommunicatorKind::none);
    for (const double loss : alone.samples.loss) EXPECT_TRUE(std::isfinite(loss));
  }
}

TEST(Sharded, SendsWhatTheClosedFormsSay) {
  if (world().size() == 1) return;
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  config.precision = Precision::bf16;
  config.wire_dtype = WireDtype::bf16;
  for (const Shard shard : kShards) {
    SCOPED_TRACE(to_string(shard));
    config.shard = shard;
    const auto device = make_device_backend(Device::cpu, 0);
    Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
    std::int64_t bytes = 0, messages = 0;
    for (const Bucket& bucket : trainer.parameters().buckets()) {
      const std::int64_t weights = static_cast<std::int64_t>(bucket.whole.weights.nbytes());
      const bool last = bucket.block == 1;  // of two: its weights stay until the backward pass
      const int gathers = shard == Shard::parameters && bucket.block >= 0 && !last ? 2 : 1;
      bytes += 2 * bucket.whole.count + gathers * weights;
      messages += 1 + gathers;
    }
    const StepTraffic traffic = train(config, shard).traffic;
    EXPECT_EQ(traffic.bytes, bytes);
    EXPECT_EQ(traffic.messages, messages);
    EXPECT_NEAR(static_cast<double>(traffic.wire_bytes),
                static_cast<double>(bytes) * (world().size() - 1) / world().size(),
                static_cast<double>(messages));
  }
}

TEST(Sharded, WhatIsLeftOutIsNotSent) {
  if (world().size() == 1) return;
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  for (const Shard shard : kShards) {
    SCOPED_TRACE(to_string(shard));
    config.leave_out = LeaveOut::none;
    const StepTraffic whole = train(config, shard).traffic;
    const Trained alone = train(config, shard, CommunicatorKind::none);
    StepTraffic sum;
    for (const auto& [left_out, other] :
         {std::pair{LeaveOut::reduce_scatter, Collective::allgather},
          {LeaveOut::allgather, Collective::reduce_scatter}}) {
      config.leave_out = left_out;
      const Trained trained = train(config, shard);
      ASSERT_EQ(trained.samples.collectives.size(), 1u);
      EXPECT_EQ(trained.samples.collectives.front().collective, other);
      for (const auto& [parameter, weights] : alone.weights)
        EXPECT_TRUE(at::equal(trained.weights.at(parameter), weights)) << "they are not trained";
      sum.bytes += trained.traffic.bytes;
      sum.messages += trained.traffic.messages;
    }
    EXPECT_EQ(sum.bytes, whole.bytes);
    EXPECT_EQ(sum.messages, whole.messages);
  }
}

/// Counts the bytes of all tensors that it has made and that are still there.
class CountingAllocator : public c10::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) override {
    void* const data = c10::alloc_cpu(bytes);
    const std::lock_guard lock(mutex_);
    sizes_[data] = bytes;
    most_ = std::max(most_, held_ += bytes);
    return {data, data, &release, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  /// Returns the most bytes that were held since the last call.
  double take_most() {
    const std::lock_guard lock(mutex_);
    return static_cast<double>(std::exchange(most_, held_));
  }
  static CountingAllocator& installed() {
    static CountingAllocator& allocator = *[] {
      auto* made = new CountingAllocator;  // tensors outlive everything that could own it
      c10::SetCPUAllocator(made, 1);
      return made;
    }();
    return allocator;
  }

 private:
  static void release(void* data) {
    CountingAllocator& counting = installed();
    const std::lock_guard lock(counting.mutex_);
    const auto size = counting.sizes_.find(data);
    counting.held_ -= size->second;
    counting.sizes_.erase(size);
    c10::free_cpu(data);
  }
  std::mutex mutex_;
  std::unordered_map<void*, std::size_t> sizes_;
  std::size_t held_ = 0, most_ = 0;
};

/// The most bytes of tensors in a step, with few tokens, so that they are those of parameters.
TEST(Sharded, PeakMemoryFollowsTheClosedForm) {
  if (world().size() != 2) return;
  CountingAllocator& counting = CountingAllocator::installed();
  RunConfig config = of_model("llama_125m", Optimizer::adamw);
  // Emulated, a step of this size takes ten seconds.
  if (make_device_backend(Device::cpu, 0)->native(Precision::bf16))
    config.precision = Precision::bf16;
  config.sequence_length = 16;
  config.batch_size = 1;
  config.num_batches = 1;  // beside one of warm-up
  config.bucket_mb = 8;
  for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
    SCOPED_TRACE(to_string(shard));
    config.shard = shard;
    const auto device = make_device_backend(Device::cpu, 0);
    const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
    Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
    counting.take_most();
    trainer.measure(world(), *communicator, nullptr);
    const double planned = plan_point(config, world().size(), false).memory_bytes();
    EXPECT_NEAR(counting.take_most() / planned, 1, 0.05);
  }
}

TEST(Sharded, EveryRankHoldsItsPart) {
  if (world().size() == 1) return;
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  for (const Shard shard : kShards) {
    config.shard = shard;
    const auto device = make_device_backend(Device::cpu, 0);
    Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
    for (const Bucket& bucket : trainer.parameters().buckets()) {
      EXPECT_EQ(bucket.count * world().size(), bucket.whole.count);
      EXPECT_EQ(bucket.state.front().numel(), bucket.count);
      EXPECT_EQ(bucket.whole.gradients.storage().nbytes() == 0, shard != Shard::optimizer);
      EXPECT_EQ(bucket.whole.weights.storage().nbytes() == 0, shard == Shard::parameters);
    }
  }
}

/// The numbers of ranks of a group that are more than one and less than all: 2 of 4.
std::vector<int> sizes_of_several_groups() {
  std::vector<int> sizes;
  for (int n = 2; n < world().size(); ++n)
    if (world().size() % n == 0) sizes.push_back(n);
  return sizes;
}

/// Compares training in groups of ranks with undivided training.
void expect_groups_as_undivided(RunConfig config, std::span<const Shard> shards,
                                double most = kRounding) {
  if (sizes_of_several_groups().empty()) return;
  const Trained right = train(config, Shard::none);
  for (const int ranks : sizes_of_several_groups())
    for (const Shard shard : shards) {
      SCOPED_TRACE(to_string(shard));
      config.shard_ranks = ranks;
      expect_near(train(config, shard), right, most);
    }
}

TEST(ShardedInGroups, OfOneRankIsUndividedAndOfAllIsPlain) {
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  const Trained undivided = train(config, Shard::none), plain = train(config, Shard::parameters);
  config.shard_ranks = world().size();
  const Trained all = train(config, Shard::parameters);
  expect_near(all, plain, 0);
  EXPECT_EQ(all.traffic.messages, plain.traffic.messages);
  config.shard_ranks = 1;
  const Trained alone = train(config, Shard::parameters);
  expect_near(alone, undivided, 0);
  EXPECT_EQ(alone.traffic.bytes, undivided.traffic.bytes);
}

TEST(ShardedInGroups, TrainsAsUndivided) {
  expect_groups_as_undivided(of_model("smallnet", Optimizer::momentum), kShards);
  RunConfig config = of_model("llama_tiny", Optimizer::momentum);
  expect_groups_as_undivided(config, kShards);
  config.overlap = Overlap::none;
  expect_groups_as_undivided(config, kParameters);
}

TEST(ShardedInGroups, AddsUpMicroBatchesAndClips) {
  RunConfig config = of_model("bert_tiny", Optimizer::momentum);
  config.clip_norm = 0.5;
  config.micro_batch_size = 2;
  expect_groups_as_undivided(config, kShards);
}

TEST(ShardedInGroups, TakesNormsOfWholeParameters) {
  for (const Optimizer rule : {Optimizer::lamb, Optimizer::lars}) {
    SCOPED_TRACE(to_string(rule));
    expect_groups_as_undivided(of_model("bert_tiny", rule), kParameters);
  }
}

// The sum of a group is rounded before it goes to the others, which an undivided one is not.
TEST(ShardedInGroups, TrainsInTwoByteTypes) {
  RunConfig config = of_model("llama_tiny", Optimizer::momentum);
  config.precision = Precision::fp16;  // whose loss scale looks for gradients of all shards
  config.wire_dtype = WireDtype::fp16;
  expect_groups_as_undivided(config, kParameters, 0.02);
}

TEST(ShardedInGroups, TrainsWithoutCommunication) {
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  for (const int ranks : sizes_of_several_groups()) {
    config.shard_ranks = ranks;
    const auto device = make_device_backend(Device::cpu, 0);
    const auto none = make_shard_communicator(CommunicatorKind::none, world(), -1, {}, ranks);
    for (const Shard shard : kShards) {
      config.shard = shard;
      Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
      for (const double loss : trainer.measure(world(), *none, nullptr).loss)
        EXPECT_TRUE(std::isfinite(loss));
    }
  }
}

TEST(ShardedInGroups, SendsWhatTheClosedFormsSay) {
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  config.wire_dtype = WireDtype::bf16;
  config.micro_batch_size = 2;  // two passes
  for (const int ranks : sizes_of_several_groups())
    for (const Shard shard : kShards) {
      SCOPED_TRACE(to_string(shard));
      config.shard = shard;
      config.shard_ranks = ranks;
      const auto device = make_device_backend(Device::cpu, 0);
      Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
      const int groups = world().size() / ranks;
      std::int64_t within = 0, between = 0, messages = 0;
      for (const Bucket& bucket : trainer.parameters().buckets()) {
        EXPECT_EQ(bucket.count * ranks, bucket.whole.count);
        EXPECT_EQ(bucket.state.front().numel(), bucket.count);
        const int scatters = shard == Shard::optimizer ? 1 : 2;
        // Of two blocks the last one stays until the backward pass, and the first one after it.
        const bool again = shard == Shard::parameters && bucket.block >= 0;
        const int gathers = !again ? 1 : bucket.block == 0 ? 3 : 2;
        within += scatters * 2 * bucket.whole.count + gathers * 4 * bucket.whole.count;
        between += 2 * bucket.count;
        messages += scatters + gathers + 1;
      }
      const Trained trained = train(config, shard);
      EXPECT_EQ(trained.traffic.bytes, within + between);
      EXPECT_EQ(trained.traffic.messages, messages);
      EXPECT_NEAR(static_cast<double>(trained.traffic.wire_bytes),
                  static_cast<double>(within) * (ranks - 1) / ranks +
                      2 * static_cast<double>(between) * (groups - 1) / groups,
                  static_cast<double>(messages));
      double of_collectives = 0;
      for (const CollectiveSamples& one : trained.samples.collectives) {
        of_collectives += one.bytes;
        if (one.collective == Collective::allreduce) {
          EXPECT_EQ(one.bytes, static_cast<double>(between) * config.num_batches);
        }
      }
      EXPECT_EQ(of_collectives, static_cast<double>(within + between) * config.num_batches);
      EXPECT_EQ(trained.samples.collectives.size(), 3u);
    }
}

namespace fs = std::filesystem;

/// A folder that all ranks see, removed by rank 0.
class CommonFolder {
 public:
  CommonFolder()
      : path_(world().broadcast(
            (fs::temp_directory_path() / ("parts-" + std::to_string(getpid()))).string())) {}
  ~CommonFolder() {
    world().barrier();
    if (world().rank() == 0) fs::remove_all(path_);
  }
  CommonFolder(const CommonFolder&) = delete;
  CommonFolder& operator=(const CommonFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Samples train_with_checkpoints(RunConfig config, Shard shard, const fs::path& folder) {
  config.shard = shard;
  config.checkpoint_every = 2;
  config.checkpoint_dir = folder.string();
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator =
      make_communicator(CommunicatorKind::mpi, world(), -1, config.wire_dtype);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  world().agree_on([&] { trainer.open_checkpoints(world()); });
  const Samples samples = trainer.measure(world(), *communicator, nullptr);
  world().barrier();
  return samples;
}

void expect_same_tensors(const c10::IValue& found, const c10::IValue& right) {
  const auto tensors = found.toTensorVector(), others = right.toTensorVector();
  ASSERT_EQ(tensors.size(), others.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(at::equal(tensors[i], others[i]));
}

/// Weights, buffers, states and scalars of two files.
void expect_same_files(const fs::path& found_path, const fs::path& right_path) {
  const auto found = torch::jit::load(found_path.string());
  const auto right = torch::jit::load(right_path.string());
  std::map<std::string, at::Tensor> tensors;
  for (const auto& one : found.named_parameters()) tensors[one.name] = one.value;
  for (const auto& one : found.named_buffers()) tensors[one.name] = one.value;
  std::size_t count = 0;
  const auto expect_in_found = [&](const auto& list) {
    for (const auto& one : list) {
      ++count;
      ASSERT_TRUE(tensors.contains(one.name)) << one.name;
      EXPECT_TRUE(at::equal(tensors[one.name], one.value)) << one.name;
    }
  };
  expect_in_found(right.named_parameters());
  expect_in_found(right.named_buffers());
  EXPECT_EQ(tensors.size(), count);
  const auto states = right.attr("optimizer").toModule();
  for (std::size_t i = 0; i < states.type()->numAttributes(); ++i) {
    const std::string name = states.type()->getAttributeName(i);
    expect_same_tensors(found.attr("optimizer").toModule().attr(name), states.attr(name));
  }
  const auto scalars = right.attr("training_state").toModule();
  for (const char* name : {"steps", "optimizer_steps", "learning_rate", "loss_scale"})
    EXPECT_EQ(found.attr("training_state").toModule().attr(name), scalars.attr(name)) << name;
}

/// With sums in the same order.
void expect_joined_as_undivided(RunConfig config) {
  if (world().size() > 2) config.wire_dtype = WireDtype::bf16;
  const CommonFolder folder;
  const std::int64_t steps = config.num_warmup_batches + config.num_batches;
  const std::string name = fmt::format("checkpoint-{:08}", steps);
  train_with_checkpoints(config, Shard::none, folder.path());
  for (const Shard shard : kShards) {
    SCOPED_TRACE(to_string(shard));
    const Samples samples = train_with_checkpoints(config, shard, folder.path());
    const fs::path mine = folder.path() / fmt::format("{}-rank{}.pt", name, world().rank());
    EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(mine)), samples.checkpoints.bytes);
    if (world().rank() == 0) {
      const WholeCheckpoint joined = read_sharded_checkpoint(folder.path());
      EXPECT_EQ(joined.training.steps, steps);
      EXPECT_EQ(joined.shard, to_string(shard));
      EXPECT_EQ(joined.ranks, world().size());
      write_whole_checkpoint(joined, folder.path() / "joined.pt");
      expect_same_files(folder.path() / "joined.pt", folder.path() / (name + ".pt"));
    }
    world().barrier();
  }
}

TEST(ShardedCheckpoints, AreThoseOfUndividedTraining) {
  for (const auto& [model, optimizer] : {std::pair{"smallnet", Optimizer::momentum},
                                         {"llama_tiny", Optimizer::adamw},
                                         {"smallnet", Optimizer::sgd}}) {
    SCOPED_TRACE(model);
    expect_joined_as_undivided(of_model(model, optimizer));
  }
}

TEST(ShardedCheckpoints, AreThoseOfUndividedTrainingInTwoByteTypes) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    SCOPED_TRACE(to_string(precision));
    RunConfig config = of_model("llama_tiny", Optimizer::adamw);
    config.num_batches = kFewSteps;
    config.precision = precision;
    if (precision == Precision::fp16) config.wire_dtype = WireDtype::fp16;
    expect_joined_as_undivided(config);
    if (precision == Precision::fp16) continue;
    config.optimizer = Optimizer::momentum;
    expect_joined_as_undivided(config);
  }
}

TEST(ShardedCheckpoints, HoldBuffersToo) {
  if (world().size() > 2) return;  // whose sums have another order
  RunConfig config = of_model("resnet18", Optimizer::momentum);
  config.image_size = 32;
  config.num_batches = 2;
  const CommonFolder folder;
  train_with_checkpoints(config, Shard::none, folder.path());
  train_with_checkpoints(config, Shard::parameters, folder.path());
  if (world().rank() != 0) return;
  write_whole_checkpoint(read_sharded_checkpoint(folder.path()), folder.path() / "joined.pt");
  expect_same_files(folder.path() / "joined.pt", folder.path() / "checkpoint-00000003.pt");
}

TEST(ShardedCheckpoints, GatherNoWeights) {
  if (world().size() == 1) return;
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  config.shard = Shard::parameters;
  const auto device = make_device_backend(Device::cpu, 0);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  torch::serialize::OutputArchive archive;
  // The model's own weights have no memory now.
  std::int64_t own = 0;
  for (const Bucket& bucket : trainer.parameters().buckets()) {
    EXPECT_EQ(bucket.whole.weights.storage().nbytes(), 0u);
    own += 3 * static_cast<std::int64_t>(bucket.weights.nbytes());
  }
  const auto model = make_model({"llama_tiny"});
  write_training_part(archive, *model, trainer.parameters(), {Shard::parameters, "m"}, {});
  for (const Bucket& bucket : trainer.parameters().buckets())
    EXPECT_EQ(bucket.whole.weights.storage().nbytes(), 0u);
  std::int64_t bytes = 0;
  archive.save_to([&](const void*, std::size_t size) {
    bytes += static_cast<std::int64_t>(size);
    return size;
  });
  EXPECT_LT(bytes, own + (1 << 18));
}

TEST(ShardedCheckpoints, ARankThatCannotWriteLeavesTheSetBefore) {
  if (world().size() == 1) return;
  const CommonFolder folder;
  RunConfig config = of_model("llama_tiny", Optimizer::adamw);
  if (world().rank() == 1)  // in the way of its third file
    fs::create_directories(folder.path() / ".checkpoint-00000007-rank1.pt.tmp" / "x");
  world().barrier();
  EXPECT_THROW(train_with_checkpoints(config, Shard::parameters, folder.path()), AgreedError);
  world().barrier();
  if (world().rank() != 0) return;
  const WholeCheckpoint joined = read_sharded_checkpoint(folder.path());
  EXPECT_EQ(joined.training.steps, 5);
  EXPECT_TRUE(joined.passed_over.empty());
}

}  // namespace
}  // namespace scalemark::sharded_mpi_test
