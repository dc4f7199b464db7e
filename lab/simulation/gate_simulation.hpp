// Simulated gates: by gate_simulation.cpp for docs/gate.md, and with fewer repetitions by
// lab/tests/gate_simulation_test.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "analysis/gate/gate.hpp"
#include "lab/simulation/gate_shapes.hpp"

namespace scalemark::gate {

/// Noise of the mean log ratio of a pair of launches.
struct PairNoise {
  std::string name;
  std::function<double(Random&)> draw;
};

inline PairNoise normal(const std::string& name, double deviation) {
  return {name, [deviation](Random& random) { return deviation * gaussian(random); }};
}

/// Of each pair either launch may be of the slow kind, 5 % slower, one in five.
inline PairNoise two_kinds() {
  return {"one launch in five 5 % slower", [](Random& random) {
            const auto launch = [&] {
              const bool slow = std::uniform_real_distribution<double>()(random) < 0.2;
              return 0.005 * gaussian(random) - (slow ? 0.05 : 0);
            };
            const double ours = launch();
            return launch() - ours;
          }};
}

inline std::vector<PairNoise> pair_noises() {
  return {normal("normal, 1 %", 0.01), normal("normal, 2.5 %", 0.025), two_kinds()};
}

struct Outcome {
  int gates = 0, regressed = 0, passed = 0, inconclusive = 0;
  double pairs = 0;  ///< of all gates

  double share(int count) const { return static_cast<double>(count) / gates; }
};

/// Gates with a true slowdown (fraction), each measured look by look until it is decided.
inline Outcome simulate(const GateDesign& design, const PairNoise& noise, double slowdown,
                        int repetitions, std::uint64_t seed) {
  Random random(seed);
  Outcome outcome;
  for (outcome.gates = 0; outcome.gates < repetitions; ++outcome.gates) {
    std::vector<double> ratios;
    GateDecision decision;
    decision.next_pairs = design.alarm.front().pairs;
    while (decision.verdict == GateVerdict::more_pairs) {
      while (ratios.size() < decision.next_pairs)
        ratios.push_back(std::log1p(-slowdown) + noise.draw(random));
      decision = decide({ratios}, design);
    }
    outcome.regressed += decision.verdict == GateVerdict::regressed;
    outcome.passed += decision.verdict == GateVerdict::pass;
    outcome.inconclusive += decision.verdict == GateVerdict::inconclusive;
    outcome.pairs += static_cast<double>(decision.pairs);
  }
  return outcome;
}

/// The further tables of docs/gate.md, on stdout.
void print_statistics(int repetitions);
void print_points(int repetitions);
void print_drift(int repetitions);
void print_levels(int repetitions);
void print_power(int repetitions);
void print_slow_modes(int repetitions);
void print_order(int repetitions);

}  // namespace scalemark::gate
