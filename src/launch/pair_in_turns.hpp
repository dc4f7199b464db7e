// A pair of launches that live at the same time and measure in turns.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "launch/point_launcher.hpp"

namespace scalemark {

/// Why launches of two builds, whose points are those of `plan` and `new_plan`, can't take turns at
/// every point; nothing where they can.
std::optional<std::string> why_not_in_turns(const SweepPlan& plan, const SweepPlan& new_plan,
                                            const std::array<PointLauncher, 2>& sides);

/// Launches `point` of both sides and appends the ends to their journals; where one fails, only
/// its own. `first`: the side that is started first and has the first turn. True where we were
/// asked to stop.
bool launch_in_turns(const SweepPlan& plan, const std::array<PointLauncher, 2>& sides,
                     const std::array<Journal*, 2>& journals, std::size_t point,
                     std::int64_t repeat, std::size_t first);

}  // namespace scalemark
