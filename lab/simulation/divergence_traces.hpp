// Made loss traces on which the divergence verdict is tried out: by the program behind the numbers
// in docs/measurements.md, and with fewer repetitions by a test.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "measure/stopping.hpp"

namespace scalemark::divergence {

using Random = std::mt19937_64;

/// A level as a function of the position in the run, 0 to 1, under noise.
struct Trace {
  std::string name;
  std::function<double(double)> level;
  double noise = 0.05;  ///< standard deviation
  double phi = 0;       ///< autocorrelation of the noise from step to step
  bool heavy = false;   ///< noise of Student's t with 3 degrees of freedom
};

inline std::vector<double> generate(const Trace& trace, int steps, Random& random) {
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(3);
  const auto draw = [&] { return trace.heavy ? heavy(random) : normal(random); };
  std::vector<double> loss;
  double noise = draw();
  for (int i = 0; i < steps; ++i) {
    loss.push_back(trace.level(static_cast<double>(i) / steps) + trace.noise * noise);
    noise = trace.phi * noise + std::sqrt(1 - trace.phi * trace.phi) * draw();
  }
  return loss;
}

inline double flat(double) { return 2; }
inline double converging(double x) { return 0.5 + 6.5 * std::exp(-6 * x); }

/// Not diverged: every verdict is a false alarm.
inline std::vector<Trace> sound_traces() {
  return {{"flat, noise 2.5 %", flat},
          {"flat, noise 25 %", flat, 0.5},
          {"flat, noise 25 %, heavy tails", flat, 0.5, 0, true},
          {"flat, noise 2.5 %, AR(1) phi 0.9", flat, 0.05, 0.9},
          {"flat, noise 10 %, AR(1) phi 0.9", flat, 0.2, 0.9},
          {"flat, noise 25 %, AR(1) phi 0.9", flat, 0.5, 0.9},
          {"converging from 7 to 0.5", converging},
          {"converging, noise 0.5", converging, 0.5},
          {"spike to 10 x that recovers within a tenth of the run",
           [](double x) { return x > 0.5 && x < 0.6 ? 20 : flat(x); }}};
}

/// Diverged: every other verdict is a miss.
inline std::vector<Trace> diverged_traces() {
  return {{"explosion, doubling ten times in the second half",
           [](double x) { return flat(x) * std::exp2(20 * std::max(0., x - 0.5)); }},
          {"converging, then back to 7", [](double x) { return x < 0.5 ? converging(2 * x) : 7; }},
          {"plateau 50 % higher from the middle on", [](double x) { return x < 0.5 ? 2 : 3; }},
          {"slow drift from 2 to 4", [](double x) { return 2 + 2 * x; }},
          {"slow drift from 2 to 4 under noise 0.1", [](double x) { return 2 + 2 * x; }, 0.1}};
}

/// The share of traces called diverged.
inline double diverged_share(const Trace& trace, int steps, int repetitions, std::uint64_t seed) {
  Random random(seed);
  int found = 0;
  for (int i = 0; i < repetitions; ++i) found += diverged(generate(trace, steps, random));
  return static_cast<double>(found) / repetitions;
}

}  // namespace scalemark::divergence
