#include "train/arithmetic.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

namespace scalemark::denormals_test {
namespace {

bool another_thread_flushes() {
  bool flushes = false;
  std::thread([&] { flushes = denormals_are_flushed(); }).join();
  return flushes;
}

double sum_of_denormals() {
  return (at::full({1 << 12}, 1e-38) * at::full({1 << 12}, 0.01))
      .to(at::kDouble)
      .sum()
      .item<double>();
}

TEST(Denormals, AreZeroOrKeptInThreadsStartedLater) {
  for (const bool on : {true, false}) {
    ASSERT_TRUE(flush_denormals(on));
    EXPECT_EQ(denormals_are_flushed(), on);
    EXPECT_EQ(another_thread_flushes(), on);
    EXPECT_EQ(sum_of_denormals() == 0, on);
  }
}

}  // namespace
}  // namespace scalemark::denormals_test
