// N ranks x batch b give the gradients of one rank x batch N*b, in one pass or in micro-batches:
// model, flat parameters, reducer and communicator together.
#include <gtest/gtest.h>

#include "comm/gradient_reducer.hpp"
#include "tests/support/mpi_support.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark::gradients_mpi_test {
namespace {

using testing::world;

struct Net {
  std::shared_ptr<Model> model;
  std::shared_ptr<FlatParameters> flat;
};

struct Case {
  std::string model = "smallnet";
  at::ScalarType dtype = at::kFloat;
  Overlap overlap = Overlap::none;
  std::int64_t micro_batch_size = 4;
};

Net make_net(const Case& c) {
  torch::manual_seed(1);
  ModelOptions options{c.model, 32, 10, true};
  options.sequence_length = 6;
  options.label_smoothing = 0.1;
  Net net{make_model(options), nullptr};
  const auto order = gradient_ready_order(*net.model, at::kCPU);
  net.flat =
      std::make_shared<FlatParameters>(*net.model, order, FlatLayout{20'000, 1'000, 0, c.dtype});
  net.model->set_gate(net.flat);
  return net;
}

/// The relative difference of all gradients between ranks that share the work and one rank that
/// does it all at once.
double difference(const Case& c) {
  const std::int64_t per_rank = 4, ranks = world().size();
  Net all = make_net(c), part = make_net(c);
  const Batch global = all.model->synthetic_batch(per_rank * ranks, 1, at::kCPU, c.dtype);
  const at::Tensor scale = at::full({}, 1. / global.loss_count);
  all.model->loss_sum(global).backward(scale);

  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  GradientReducer reducer(*communicator, part.flat->gradient_buffers(), part.flat->parameters_in(),
                          c.overlap);
  part.flat->set_on_ready([&](int bucket) { reducer.add(bucket, nullptr); });
  const Batch mine = split(global, per_rank)[static_cast<std::size_t>(world().rank())];
  const auto micro_batches = split(mine, c.micro_batch_size);
  for (int step = 0; step < 2; ++step) {
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
      part.flat->begin_pass(i == 0, i + 1 == micro_batches.size());
      part.model->loss_sum(micro_batches[i]).backward(scale);
    }
    reducer.finalize(nullptr);
  }
  double squares = 0, error = 0;
  for (std::size_t i = 0; i < all.flat->buckets().size(); ++i) {
    const at::Tensor expected = all.flat->buckets()[i].gradients;
    squares += expected.square().sum().item<double>();
    error += (part.flat->buckets()[i].gradients - expected).square().sum().item<double>();
  }
  EXPECT_GT(squares, 0);
  return std::sqrt(error / squares);
}

class RankEquality : public ::testing::TestWithParam<std::string> {};

TEST_P(RankEquality, Fp32) { EXPECT_LT(difference({GetParam()}), 1e-6); }
TEST_P(RankEquality, Fp32Overlapped) {
  EXPECT_LT(difference({GetParam(), at::kFloat, Overlap::backward}), 1e-6);
}
TEST_P(RankEquality, Fp32InMicroBatches) {
  EXPECT_LT(difference({GetParam(), at::kFloat, Overlap::backward, 1}), 1e-6);
}
// Each rank, and each micro-batch, rounds its own part of a sum to bf16.
TEST_P(RankEquality, Bf16InMicroBatches) {
  EXPECT_LT(difference({GetParam(), at::kBFloat16, Overlap::none, 2}), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Models, RankEquality,
                         ::testing::Values("smallnet", "transformer_tiny", "bert_tiny"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace scalemark::gradients_mpi_test
