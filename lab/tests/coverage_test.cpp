// The promise of docs/coverage.md with fewer repetitions: 95 % intervals cover 93-97 % of normal,
// lognormal and AR(1) (phi up to 0.5) series of 400 steps and more.
#include <gtest/gtest.h>

#include "lab/simulation/coverage_series.hpp"

namespace scalemark::coverage::coverage_test {
namespace {

constexpr int kRepetitions = 1500;
// Three standard errors of a 95 % proportion: a true coverage at the edge of the promise passes,
// 0.5 points and more beyond the tolerance fail.
const double kTolerance = 3 * std::sqrt(0.95 * 0.05 / kRepetitions);

class PromisedCoverage : public testing::TestWithParam<std::size_t> {};

TEST_P(PromisedCoverage, IsKept) {
  const Promise promise = promises()[GetParam()];
  const Coverage c = simulate(promise.series, promise.steps, kRepetitions, 1000 + GetParam());
  EXPECT_GE(c.covered_fraction(), 0.93 - kTolerance)
      << promise.series.name << ", " << promise.steps << " steps";
  EXPECT_LE(c.covered_fraction(), 0.97 + kTolerance)
      << promise.series.name << ", " << promise.steps << " steps";
  EXPECT_LT(c.refused_fraction(), 0.01) << "an interval is promised here";
}
INSTANTIATE_TEST_SUITE_P(All, PromisedCoverage, testing::Range<std::size_t>(0, promises().size()));

TEST(Coverage, TheSimulationCanFail) {
  // The naive interval of independent samples must fail it on correlated steps: the theory says 74
  // % at phi 0.5.
  Random random(7);
  Coverage naive;
  const Series series = ar1(0.5);
  for (int i = 0; i < 500; ++i)
    naive.add(student_interval(series.generate(400, random)), series.mean);
  EXPECT_LT(naive.covered_fraction(), 0.85);
}

TEST(Coverage, StrongCorrelationIsMostlyRefused) {
  EXPECT_GT(simulate(ar1(0.9), 100, 300, 11).refused_fraction(), 0.95);
}

}  // namespace
}  // namespace scalemark::coverage::coverage_test
