// --data learnable can be learnt, also on samples never trained on, and noise cannot.
#include <gtest/gtest.h>

#include "train/flat_parameters.hpp"
#include "train/optimizer.hpp"

namespace scalemark::learnable_test {
namespace {

struct Setting {
  std::string model;
  double learning_rate;
  int steps;
};

constexpr std::int64_t kBatch = 16, kRing = 16;

/// Batch `i` of the task, or of noise with labels of its own.
Batch draw(Model& model, SyntheticData data, std::int64_t i) {
  if (data == SyntheticData::noise)
    return model.synthetic_batch(kBatch, static_cast<std::uint64_t>(i), at::kCPU, at::kFloat);
  return model.learnable_batch({i * kBatch, kBatch}, 1, at::kCPU, at::kFloat);
}

double mean_loss(Model& model, const Batch& batch) {
  const at::NoGradGuard no_grad;
  return model.loss_sum(batch).item<double>() / batch.loss_count;
}

struct Losses {
  double first, trained, unseen;
};

/// Trains on a ring of batches, then looks at the ring's first batch and at one that is not in it.
Losses train(const Setting& setting, SyntheticData data) {
  torch::manual_seed(1);
  ModelOptions options{setting.model, 32, 10, true};
  options.sequence_length = 8;
  const auto model = make_model(options);
  RunConfig config;
  config.model = setting.model;
  config.init_learning_rate = setting.learning_rate;
  const auto optimizer = make_update_rule(config);
  const auto flat = std::make_shared<FlatParameters>(
      *model, gradient_ready_order(*model, at::kCPU),
      FlatLayout{1 << 20, 1 << 20, optimizer->states(), at::kFloat});
  model->set_gate(flat);
  std::vector<Batch> ring;
  for (std::int64_t i = 0; i < kRing; ++i) ring.push_back(draw(*model, data, i));
  const Batch unseen = draw(*model, data, 1000);
  Losses losses{mean_loss(*model, ring[0]), 0, 0};
  for (int step = 0; step < setting.steps; ++step) {
    const Batch& batch = ring[static_cast<std::size_t>(step % kRing)];
    model->loss_sum(batch).backward(at::full({}, 1 / batch.loss_count));
    optimizer->begin_step();
    for (Bucket& bucket : flat->buckets()) optimizer->update(bucket);
  }
  losses.trained = mean_loss(*model, ring[0]);
  losses.unseen = mean_loss(*model, unseen);
  return losses;
}

class Task : public ::testing::TestWithParam<Setting> {};

TEST_P(Task, IsLearntAndGeneralises) {
  const Losses losses = train(GetParam(), SyntheticData::learnable);
  EXPECT_LT(losses.trained, 0.3 * losses.first);
  EXPECT_LT(losses.unseen, 0.4 * losses.first);
}

TEST_P(Task, NoiseDoesNotGeneralise) {
  const Losses losses = train(GetParam(), SyntheticData::noise);
  EXPECT_GT(losses.unseen, 0.9 * losses.first);
}

INSTANTIATE_TEST_SUITE_P(Models, Task,
                         ::testing::Values(Setting{"smallnet", 0.05, 200},
                                           Setting{"transformer_tiny", 2e-3, 200}),
                         [](const auto& info) { return info.param.model; });

}  // namespace
}  // namespace scalemark::learnable_test
