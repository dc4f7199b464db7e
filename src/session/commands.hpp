// Declares the engine's commands. Every rank calls them, and the returned code is the same on all
// ranks.
#pragma once

#include "config/load.hpp"
#include "session/session.hpp"

namespace scalemark {

/// Runs `scalemark run`: one measured run over the ranks that this process was launched with.
ExitCode run_command(Session& session);

/// Runs `scalemark scale` inside a launch. Every point of the curve is a subgroup of one world; the
/// points are interleaved over rounds, with and without communication.
ExitCode scale_command(Session& session);

/// Runs `scalemark infer`: forward passes of independent replicas, one per rank.
ExitCode infer_command(Session& session);

/// Runs `scalemark preflight`: health checks of the nodes that the ranks run on. Runs --pinning
/// too.
ExitCode preflight_command(Session& session);

}  // namespace scalemark
