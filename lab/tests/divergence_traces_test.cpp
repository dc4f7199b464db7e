// How often a made loss trace counts as diverged.
#include "lab/simulation/divergence_traces.hpp"

#include <gtest/gtest.h>

namespace scalemark::divergence_traces_test {
namespace {

using divergence::diverged_share;
using divergence::Trace;

constexpr int kRepetitions = 400;

TEST(DivergenceTraces, OfMadeTracesIsRarelyAFalseAlarm) {
  for (const Trace& trace : divergence::sound_traces())
    for (const int steps : {40, 100, 1000})
      EXPECT_LE(diverged_share(trace, steps, kRepetitions, 1), trace.phi > 0 ? 0.02 : 0)
          << trace.name << ", " << steps << " steps";
}

TEST(DivergenceTraces, IsFoundInMadeTraces) {
  for (const Trace& trace : divergence::diverged_traces())
    for (const int steps : {400, 1000})
      EXPECT_GE(diverged_share(trace, steps, kRepetitions, 2), 0.98)
          << trace.name << ", " << steps << " steps";
}

}  // namespace
}  // namespace scalemark::divergence_traces_test
