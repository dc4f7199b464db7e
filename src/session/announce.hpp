// What is about to be measured, said before it begins.
#pragma once

#include <optional>
#include <vector>

#include "session/session.hpp"

namespace scalemark {

/// "resnet50 fp32, batch 16, 2 ranks x 1 thread, cpu (AMD EPYC 7B13)", on stderr. Strong
/// scaling: "global batch 32". `ranks`: of a curve all of its points.
void announce_run(const Session& session, const ResolvedConfig& config, const BatchPlan& batch,
                  const std::vector<int>& ranks);

/// Of warm-up and measured loop, where a step takes so long.
double expected_seconds(const ResolvedConfig& config, double step_seconds);

/// About how long the steps take, where that is over ten minutes or the precision is not native:
/// from the FLOPs of a step of all ranks and `gemm_flops`, their measured rate of matrix products,
/// or that of convolutions where an image model has slower ones. Nothing where one of them is not
/// known. Collective.
void announce_time(const Session& session, RankGroup& ranks, const ResolvedConfig& config,
                   double flops_per_step, std::optional<double> gemm_flops);

}  // namespace scalemark
