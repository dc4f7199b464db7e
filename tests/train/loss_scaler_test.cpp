// Loss scaling against torch.amp.GradScaler's rule, written out.
#include "train/loss_scaler.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace scalemark::loss_scaler_test {
namespace {

RunConfig config_of(bool dynamic) {
  RunConfig config;
  config.precision = Precision::fp16;
  config.fp16_loss_scale = 1024;
  config.fp16_enable_auto_loss_scale = dynamic;
  config.fp16_inc_loss_scale_every_n = 3;
  return config;
}

std::vector<Bucket> make_buckets() {
  std::vector<Bucket> buckets(2);
  for (Bucket& bucket : buckets) {
    bucket.count = 5;
    bucket.gradients = at::full({5}, 2048.);
  }
  return buckets;
}

bool step(LossScaler& scaler, double value = 1) {
  auto buckets = make_buckets();
  buckets[1].gradients[4] = value;
  return scaler.unscale(buckets).item<float>() == 0;
}

double scale_of(const LossScaler& scaler) { return scaler.scale().item<double>(); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LossScaler, DividesByWhatTheLossWasMultipliedWith) {
  auto buckets = make_buckets();
  EXPECT_EQ(LossScaler(config_of(true), at::kCPU).unscale(buckets).item<float>(), 0);
  for (const Bucket& bucket : buckets) EXPECT_TRUE((bucket.gradients == 2).all().item<bool>());
}

TEST(LossScaler, HalvesOnEveryOverflowAndDoublesAfterACleanRun) {
  LossScaler scaler(config_of(true), at::kCPU);
  EXPECT_FALSE(step(scaler, kInfinity));
  EXPECT_EQ(scale_of(scaler), 512);
  EXPECT_FALSE(step(scaler, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(scale_of(scaler), 256);
  EXPECT_TRUE(step(scaler));
  EXPECT_TRUE(step(scaler));
  EXPECT_FALSE(step(scaler, -kInfinity));  // the run of clean steps begins anew
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(step(scaler));
  EXPECT_EQ(scale_of(scaler), 128);
  EXPECT_TRUE(step(scaler));
  EXPECT_EQ(scale_of(scaler), 256);
  const LossScaling report = scaler.report();
  EXPECT_EQ(report.initial, 1024);
  EXPECT_EQ(report.last, 256);
  EXPECT_EQ(report.skipped_steps, 3);
}

TEST(LossScaler, StaysBetweenOneAndTheLargest) {
  RunConfig config = config_of(true);
  config.fp16_loss_scale = 2;
  LossScaler small(config, at::kCPU);
  for (int i = 0; i < 3; ++i) step(small, kInfinity);
  EXPECT_EQ(scale_of(small), 1);
  config.fp16_loss_scale = 1 << 24;
  LossScaler large(config, at::kCPU);
  for (int i = 0; i < 6; ++i) step(large);
  EXPECT_EQ(scale_of(large), 1 << 24);
}

TEST(LossScaler, AStaticScaleStays) {
  LossScaler scaler(config_of(false), at::kCPU);
  EXPECT_FALSE(step(scaler, kInfinity));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(step(scaler));
  EXPECT_EQ(scale_of(scaler), 1024);
  EXPECT_EQ(scaler.report().skipped_steps, 1);
}

TEST(LossScaler, IsForFp16Alone) {
  RunConfig config = config_of(true);
  config.precision = Precision::bf16;
  LossScaler scaler(config, at::kCPU);
  EXPECT_FALSE(scaler.enabled());
}

}  // namespace
}  // namespace scalemark::loss_scaler_test
