// What comes before a measurement: says what is about to be measured, and waits for a quiet
// machine.
#pragma once

#include <optional>
#include <vector>

#include "session/session.hpp"

namespace scalemark {

/// Prints a line like "resnet50 fp32, batch 16, 2 ranks x 1 thread, cpu (AMD EPYC 7B13)" to stderr.
/// With strong scaling it says "global batch 32" instead. `ranks` has the sizes of all points of a
/// curve.
void announce_run(const Session& session, const ResolvedConfig& config, const BatchPlan& batch,
                  const std::vector<int>& ranks);

/// Returns the time of the warm-up and the measured loop together where a step takes
/// `step_seconds`.
double expected_seconds(const ResolvedConfig& config, double step_seconds);

/// Says about how long the steps take, where that is over ten minutes or the precision is not
/// native. The estimate is computed from the FLOPs of a step of all ranks and `gemm_flops`, their
/// measured rate of matrix products, or that of convolutions where an image model has slower ones.
/// Says nothing where one of the two is not known. All ranks call it.
void announce_time(const Session& session, RankGroup& ranks, const ResolvedConfig& config,
                   double flops_per_step, std::optional<double> gemm_flops);

/// Waits until no host of the group has been used by others for a second, or until --wait_for_idle
/// seconds have passed, which is a warning; a stop ends it too. It does nothing where the option is
/// not set. All ranks call it.
void wait_for_idle(Session& session, RankGroup& ranks);

}  // namespace scalemark
