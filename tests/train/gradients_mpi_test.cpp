// N ranks x batch b give the gradients of one rank x batch N*b: model, flat parameters, reducer and
// communicator together.
#include <gtest/gtest.h>

#include "comm/gradient_reducer.hpp"
#include "tests/support/mpi_support.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {
namespace {

using testing::world;

struct Net {
  std::shared_ptr<Model> model;
  std::shared_ptr<FlatParameters> flat;
};

Net make_net(at::ScalarType dtype) {
  torch::manual_seed(1);
  Net net{make_model({"smallnet", 32, 10, true}), nullptr};
  const auto order = gradient_ready_order(*net.model, at::kCPU);
  net.flat = std::make_shared<FlatParameters>(*net.model, order, 20'000, false, dtype);
  net.model->set_gate(net.flat);
  return net;
}

/// The relative difference of all gradients between ranks that share the work and one rank that
/// does it all.
double difference(at::ScalarType dtype, Overlap overlap) {
  const std::int64_t per_rank = 3, ranks = world().size();
  Net all = make_net(dtype), part = make_net(dtype);
  const Batch global = all.model->synthetic_batch(per_rank * ranks, 1, at::kCPU, dtype);
  const at::Tensor scale = at::full({}, 1. / static_cast<double>(per_rank * ranks));
  all.model->loss_sum(global).backward(scale);

  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  GradientReducer reducer(*communicator, part.flat->gradient_buffers(), part.flat->parameters_in(),
                          overlap);
  part.flat->set_on_ready([&](int bucket) { reducer.add(bucket, nullptr); });
  Batch mine;
  mine.inputs = global.inputs.narrow(0, world().rank() * per_rank, per_rank);
  mine.targets = global.targets.narrow(0, world().rank() * per_rank, per_rank);
  for (int step = 0; step < 2; ++step) {
    part.model->loss_sum(mine).backward(scale);
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

TEST(RankEquality, Fp32) { EXPECT_LT(difference(at::kFloat, Overlap::none), 1e-6); }
TEST(RankEquality, Fp32Overlapped) { EXPECT_LT(difference(at::kFloat, Overlap::backward), 1e-6); }
// Each rank rounds its own part of a sum to bf16.
TEST(RankEquality, Bf16) { EXPECT_LT(difference(at::kBFloat16, Overlap::none), 0.02); }

}  // namespace
}  // namespace scalemark
