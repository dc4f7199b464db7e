// Two builds side by side: pairs of launches in random order until the verdict is clear or the
// budget is spent.
#pragma once

#include "launch/gate.hpp"

namespace scalemark {

/// Launches pairs of every point, a launch of each build, into DIR/base and DIR/new, which are
/// folders of sweeps; writes DIR/verdict.json. A launch that fails ends it; the same command goes
/// on from where it was.
ExitCode gate_builds(const GateRequest& request);

}  // namespace scalemark
