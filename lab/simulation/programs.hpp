// The programs behind the tables of docs/: each prints its table and returns its exit code.
// lab/programs has their mains.
#pragma once

#include <string>
#include <vector>

namespace scalemark::simulation {

/// How often the 95 % intervals of a run's mean and of a comparison between launches hold the
/// truth: docs/coverage.md. [REPETITIONS [launches]]; the published page has the default,
/// "launches" prints the second half alone. 1 where a promise is broken.
int coverage(const std::vector<std::string>& arguments);

/// How often the divergence verdict is wrong, summed up in docs/measurements.md. [REPETITIONS]
int divergence(const std::vector<std::string>& arguments);

/// How often the gate is right and how many pairs of launches it takes: the tables of docs/gate.md.
/// [REPETITIONS]; the published tables have the default.
int gate_simulation(const std::vector<std::string>& arguments);

/// How often a history without a change is said to have one, and changes are found: the tables of
/// docs/gate.md on it. [ROWS]; the published tables have the default.
int history_simulation(const std::vector<std::string>& arguments);

/// Fits the first half of scaling curves, predicts the second, and prints the errors beside those
/// of the null models: the tables of docs/projection.md. CURVE_OR_FOLDER...; --leave_one_out of
/// them: tunes the constants on all curves but each one, which it then predicts, and on all, where
/// others than the shipped ones are 1; --speed: how long predictions take, and order statistics
/// against drawn ranks.
int projection_check(const std::vector<std::string>& arguments);

}  // namespace scalemark::simulation
