// The GEMM probe gives a rate that a computer of today can have.
#include "probe/gemm.hpp"

#include <gtest/gtest.h>

#include "tests/train/wrapped_cpu.hpp"

namespace scalemark::gemm_test {
namespace {

TEST(Gemm, RateIsPositiveAndBelowAPetaflop) {
  const auto device = make_device_backend(Device::cpu, 0);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const double flops = measure_gemm_flops(*device, dtype, 64, 0.01);
    EXPECT_GT(flops, 1e6);
    EXPECT_LT(flops, 1e15);
  }
}

/// A device behind the host: how many products it was given between two waits, and how many marks.
class QueuedDevice : public testing::WrappedCpu {
 public:
  class Clock : public StepClock {
   public:
    explicit Clock(long& marks) : marks_(marks) {}
    void mark() override { ++marks_; }
    void pause() override {}
    /// A millisecond a product.
    const std::vector<double>& seconds() override {
      seconds_.assign(static_cast<std::size_t>(marks_ - 1), 1e-3);
      return seconds_;
    }

   private:
    long& marks_;
    std::vector<double> seconds_;
  };
  bool works_behind_host() const override { return true; }
  std::unique_ptr<StepClock> make_step_clock() override {
    marks = 0;
    return std::make_unique<Clock>(marks);
  }
  void synchronize() override {
    if (marks > 0) products_of_a_round.push_back(marks - 1);
  }

  long marks = 0;
  std::vector<long> products_of_a_round;
};

/// The gap between a wait and the next launch would be in the time of a product that begins there.
TEST(Gemm, QueuesProductsAheadOfADeviceBehindTheHost) {
  QueuedDevice device;
  const GemmRates rates = measure_gemm(device, at::kFloat, 64, 0.05);
  const double flops = 2. * 64 * 64 * 64 / 1e-3;
  EXPECT_DOUBLE_EQ(rates.median, flops);
  EXPECT_NEAR(rates.mean, flops, 1e-6 * flops);
  ASSERT_FALSE(device.products_of_a_round.empty());
  for (const long products : device.products_of_a_round) EXPECT_GT(products, 1);
}

}  // namespace
}  // namespace scalemark::gemm_test
