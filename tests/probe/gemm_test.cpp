// The GEMM probe gives a rate that a computer of today can have.
#include "probe/gemm.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace scalemark::gemm_test
