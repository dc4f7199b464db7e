// Names the commit that made training slower, by gates of commits of a range.
#pragma once

#include <functional>

#include "launch/gate_builds.hpp"

namespace scalemark {

/// Gates the whole range from `asked.base` to `asked.fresh`, both commits of the source tree. Where
/// it regressed, halves it: the base is gated against the commit in the middle, which is on the
/// slow side if it has lost at least half of what the whole range has, until one commit is left,
/// which is gated against the one before it. A commit that can't be built, launched or told is left
/// out, and what is then left may be several. Writes DIR/verdict.json and hands it to `report`: of
/// that last gate, else of the whole range, with a note that names the commits. Each gate keeps its
/// launches in DIR/GOOD-COMMIT, from where the same command goes on.
ExitCode bisect_builds(const GatedBuilds& asked, LaunchProgress& progress,
                       const std::function<void(const Verdict&)>& report);

/// Prints the commits of the range and how many gates there will be.
void print_bisection(const GatedBuilds& asked);

}  // namespace scalemark
