// Memory bandwidth counts STREAM's bytes; quanta repeat the same work, and their statistics are
// exact.
#include <gtest/gtest.h>

#include "probe/gemm.hpp"
#include "probe/memory_bandwidth.hpp"

namespace scalemark::preflight_probes_test {
namespace {

TEST(MemoryBandwidth, ATriadMovesThreeDoublesAnElement) {
  EXPECT_EQ(triad_bytes(1), 24);
  EXPECT_EQ(triad_bytes(1 << 20), 25165824);
}

TEST(MemoryBandwidth, AnyNumberOfThreadsComputesTheWholeArray) {
  for (const int threads : {1, 2, 3})
    for (const std::int64_t elements : {1, 7, 100'003}) {
      const auto rate = measure_memory_bandwidth(threads, elements, 1e-3);  // checks each element
      EXPECT_EQ(rate.array_bytes, 8 * elements);
      EXPECT_GE(rate.passes, 3);
      EXPECT_GT(rate.bytes_per_second, 0);
      EXPECT_GE(rate.best_bytes_per_second, rate.bytes_per_second);
    }
}

TEST(FixedWork, StatisticsOfKnownQuanta) {
  std::vector<double> quanta(100, 1.0);
  quanta[7] = 51;
  const auto statistics = quantum_statistics({quanta});
  EXPECT_EQ(statistics.samples, 100u);
  EXPECT_DOUBLE_EQ(statistics.best_mean, 1.5);
  EXPECT_DOUBLE_EQ(statistics.median, 1);
  EXPECT_DOUBLE_EQ(statistics.mean, 1.5);
  EXPECT_DOUBLE_EQ(statistics.max_over_min, 51);
  EXPECT_NEAR(statistics.p99, 1.5, 1e-9);  // a hundredth of the way from the 99th to the 100th
}

TEST(FixedWork, TheBestBlockForgetsADisturbance) {
  // Disturbed for two of three blocks, and slowed by a quota in each.
  EXPECT_DOUBLE_EQ(quantum_statistics({{1, 9}, {1, 1}, {5, 5}}).best_mean, 1);
  EXPECT_DOUBLE_EQ(quantum_statistics({{1, 3}, {3, 1}}).best_mean, 2);
  EXPECT_DOUBLE_EQ(quantum_statistics({{1, 9}, {1, 1}, {4, 8}}).mean, 4);
}

TEST(FixedWork, RepeatsAtLeastTenTimes) {
  const std::int64_t steps = calibrate_quantum(1e-5);
  EXPECT_GT(steps, 0);
  const auto quanta = repeat_quantum(steps, 0);
  EXPECT_EQ(quanta.size(), 10u);
  for (const double seconds : quanta) EXPECT_GT(seconds, 0);
}

TEST(Gemm, TheMeanCountsEveryProduct) {
  const auto device = make_device_backend(Device::cpu, 0);
  for (const auto dtype : {at::kDouble, at::kHalf}) {
    const GemmRates rates = measure_gemm(*device, dtype, 32, 0.001);
    EXPECT_GT(rates.mean, 0);
    EXPECT_GT(rates.median, 0);
  }
}

}  // namespace
}  // namespace scalemark::preflight_probes_test
