// False alarms and power of the gate, by simulation with fixed seeds.
#include "lab/simulation/gate_simulation.hpp"

#include <gtest/gtest.h>

#include "analysis/gate/gate.hpp"
#include "lab/simulation/clopper_pearson.hpp"

namespace scalemark::gate_simulation_test {
namespace {

/// The promise of docs/gate.md on a design that ends after 14 pairs: a Clopper-Pearson bound must
/// leave it possible.
TEST(GateSimulation, KeepsItsFalseAlarmsAndFalsePasses) {
  GateDesign design;
  design.threshold = 0;  // every alarm counts
  design.alarm = {{7, 0.0079}, {10, 0.02}, {14, 0.04}};
  design.pass = {{7, 0.0313}, {10, 0.04}, {14, 0.05}};
  for (const gate::PairNoise& noise : gate::pair_noises()) {
    const gate::Outcome none = gate::simulate(design, noise, 0, 600, 1);
    EXPECT_LE(clopper_pearson(none.regressed, none.gates, 0.99).lo, 0.04) << noise.name;
    const gate::Outcome two = gate::simulate(design, noise, 0.02, 600, 2);
    EXPECT_LE(clopper_pearson(two.passed, two.gates, 0.99).lo, 0.05) << noise.name;
  }
}

TEST(GateSimulation, FindsFivePercentWithFewPairs) {
  const gate::Outcome outcome = gate::simulate({}, gate::pair_noises()[0], 0.05, 200, 3);
  EXPECT_GE(outcome.regressed, 198);
  EXPECT_LT(outcome.pairs / outcome.gates, 8.5);
}

}  // namespace
}  // namespace scalemark::gate_simulation_test
