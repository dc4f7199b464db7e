// Strategies for embedding gradients in the trainer as a whole, on 1 to 4 ranks: the weights of
// dense gradients, the same bits on all ranks, and the bytes of the closed form.
#include <gtest/gtest.h>

#include "analysis/run_plan.hpp"
#include "models/catalog.hpp"
#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "train/optimizer.hpp"
#include "train/trainer.hpp"

namespace scalemark::embedding_mpi_test {
namespace {

using testing::bytes_of;
using testing::world;

struct Strategy {
  const char* name;
  EmbeddingGradients gradients;
  TiedGradient tied;
};
constexpr std::array kStrategies{
    Strategy{"sparse", EmbeddingGradients::sparse, TiedGradient::dense},
    Strategy{"sparse, tied sparse", EmbeddingGradients::sparse, TiedGradient::sparse},
    Strategy{"sparse_as_dense", EmbeddingGradients::sparse_as_dense, TiedGradient::dense}};

RunConfig with(RunConfig config, const Strategy& strategy) {
  config.embedding_gradients = strategy.gradients;
  config.tied_gradient = strategy.tied;
  return config;
}

/// A few steps of SGD: Adam would make much of gradients that are nothing but rounding.
RunConfig small_config(const std::string& model) {
  RunConfig config;
  config.model = model;
  config.batch_size = 4;
  config.sequence_length = 8;
  config.optimizer = Optimizer::momentum;
  config.init_learning_rate = 0.005;  // a larger one lets rounding grow: ReLUs that flip
  config.num_batches = 4;
  config.num_warmup_batches = 1;
  config.bucket_mb = 0.2;
  config.first_bucket_mb = 0.1;
  return config;
}

struct TrainedRun {
  Samples samples;
  std::vector<at::Tensor> before, after;  ///< weights by parameter, whatever their buckets
  double gradient_norm = 0;               ///< of the last step
};

std::vector<at::Tensor> weights_of(FlatParameters& flat) {
  std::vector<at::Tensor> weights(flat.slices().size());
  for (const Slice& slice : flat.slices())
    weights[static_cast<std::size_t>(slice.parameter)] =
        flat.buckets()[static_cast<std::size_t>(slice.bucket)]
            .weights.narrow(0, slice.offset, slice.count)
            .clone();
  return weights;
}

TrainedRun run(const RunConfig& config, CommunicatorKind kind = CommunicatorKind::mpi) {
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(kind, world(), -1, config.wire_dtype);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  TrainedRun result;
  result.before = weights_of(trainer.parameters());
  result.samples = trainer.measure(world(), *communicator, nullptr);
  result.after = weights_of(trainer.parameters());
  result.gradient_norm =
      gradient_norm(trainer.parameters().buckets(), trainer.parameters().operators())
          .item<double>();
  return result;
}

/// |a - b| / |what the training changed|.
double difference(const TrainedRun& a, const TrainedRun& b) {
  double error = 0, change = 0;
  for (std::size_t i = 0; i < a.after.size(); ++i) {
    error += (a.after[i] - b.after[i]).square().sum().item<double>();
    change += (a.after[i] - a.before[i]).square().sum().item<double>();
  }
  EXPECT_GT(change, 0);
  return std::sqrt(error / change);
}

void expect_same_bits_on_all_ranks(const TrainedRun& mine) {
  for (const at::Tensor& weights : mine.after)
    for (const std::string& theirs : world().all_gather(bytes_of(weights)))
      EXPECT_EQ(theirs == bytes_of(weights), true);
}

class Strategies : public ::testing::TestWithParam<std::string> {
 protected:
  /// bf16 shadow weights of nearly the same masters may round apart.
  static void expect_the_weights_of_dense(const RunConfig& config) {
    const bool wide = config.precision == Precision::fp32;
    const TrainedRun dense = run(config);
    for (const Strategy& strategy : kStrategies) {
      const TrainedRun found = run(with(config, strategy));
      EXPECT_LT(difference(dense, found), wide ? 1e-4 : 1e-2) << strategy.name;
      expect_same_bits_on_all_ranks(found);
    }
  }
};

TEST_P(Strategies, LeaveTheWeightsOfDenseGradients) {
  expect_the_weights_of_dense(small_config(GetParam()));
}

TEST_P(Strategies, LeaveThemInMicroBatchesAfterTheBackwardPass) {
  RunConfig config = small_config(GetParam());
  config.micro_batch_size = 2;
  config.overlap = Overlap::none;
  expect_the_weights_of_dense(config);
}

TEST_P(Strategies, LeaveThemInBf16) {
  RunConfig config = small_config(GetParam());
  config.precision = Precision::bf16;
  config.micro_batch_size = 2;
  expect_the_weights_of_dense(config);
}

TEST_P(Strategies, LeaveThemClipped) {
  RunConfig config = small_config(GetParam());
  config.clip_norm = 0.01;
  expect_the_weights_of_dense(config);
  EXPECT_NEAR(run(with(config, kStrategies[1])).gradient_norm, 0.01, 1e-6);
}

TEST_P(Strategies, TrainEachRankByItselfWithoutCommunication) {
  const RunConfig config = small_config(GetParam());
  const TrainedRun dense = run(config, CommunicatorKind::none);
  for (const Strategy& strategy : kStrategies) {
    const TrainedRun found = run(with(config, strategy), CommunicatorKind::none);
    EXPECT_LT(difference(dense, found), 1e-5) << strategy.name;
    EXPECT_EQ(found.samples.embedding.messages, 0);
    EXPECT_EQ(found.samples.embedding.wire_bytes, 0);
  }
}

TEST_P(Strategies, HoldAndSendTheBytesOfTheClosedForm) {
  RunConfig config = small_config(GetParam());
  config.micro_batch_size = 2;
  std::vector<TableLookups> tables;
  for (const TableFacts& table : embedding_tables(*find_model(config.model), 2, 8))
    tables.push_back({table.rows, table.width, table.tied, 2 * table.lookups});
  const std::int64_t ranks = world().size();
  const auto steps = static_cast<double>(config.num_batches);
  for (const Strategy& strategy : kStrategies) {
    const EmbeddingBytes expected =
        embedding_bytes(tables, strategy.gradients, strategy.tied, ranks);
    const EmbeddingSamples found = run(with(config, strategy)).samples.embedding;
    double rows = 0;
    for (const double of_table : found.rows) rows += of_table;
    EXPECT_EQ(rows, steps * static_cast<double>(expected.rows_per_rank)) << strategy.name;
    EXPECT_EQ(found.gathered_bytes, steps * static_cast<double>(expected.gathered_bytes));
    const auto sent = static_cast<double>((ranks - 1) * expected.gathered_bytes / ranks);
    EXPECT_EQ(found.wire_bytes, steps * sent) << strategy.name;
    EXPECT_EQ(found.payload_bytes,
              ranks == 1 ? 0 : found.gathered_bytes / static_cast<double>(ranks));
    EXPECT_GT(found.densify_seconds, 0);
    if (ranks > 1) {
      EXPECT_GT(found.exchange_seconds, 0) << strategy.name;
    }
  }
}

TEST_P(Strategies, PassTheDataCheckAndMeasureAgain) {
  const RunConfig config = with(small_config(GetParam()), kStrategies[1]);
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
  trainer.keep_initial_weights();
  EXPECT_NO_THROW(trainer.check_data(*communicator, world().rank()));
  const auto first = trainer.measure(world(), *communicator, nullptr).loss;
  EXPECT_GT(trainer.calibrate(world()), 0);
  EXPECT_EQ(trainer.measure(world(), *communicator, nullptr).loss, first);
}

INSTANTIATE_TEST_SUITE_P(Embedding, Strategies, ::testing::Values("transformer_tiny", "bert_tiny"),
                         [](const auto& info) { return info.param; });

/// More rows from some ranks than from others, as batches of unlike length give.
TEST(EmbeddingExchange, RanksMaySendUnlikeNumbersOfRows) {
  RunConfig config = small_config("transformer_tiny");
  const auto device = make_device_backend(Device::cpu, 0);
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  std::vector<TrainedRun> runs;
  for (const EmbeddingGradients gradients :
       {EmbeddingGradients::dense, EmbeddingGradients::sparse}) {
    config.embedding_gradients = gradients;
    Trainer trainer(config, *device, world(), plan_batch(config, world().size()));
    trainer.set_batch({2 + world().rank() % 3, 12, 1});
    runs.emplace_back();
    runs.back().before = weights_of(trainer.parameters());
    runs.back().samples = trainer.measure(world(), *communicator, nullptr);
    runs.back().after = weights_of(trainer.parameters());
  }
  EXPECT_LT(difference(runs[0], runs[1]), 1e-5);
  expect_same_bits_on_all_ranks(runs[1]);
  EXPECT_EQ(runs[1].samples.embedding.rows[0], 4. * 2 * 8 * (2 + world().rank() % 3));
}

}  // namespace
}  // namespace scalemark::embedding_mpi_test
