// The engine's commands. Every rank calls them; the returned code is the same on all ranks.
#pragma once

#include "config/load.hpp"
#include "session/session.hpp"

namespace scalemark {

/// `scalemark run`: one measured run over the ranks that this process was launched with.
ExitCode run_command(Session& session);

/// `scalemark scale` inside a launch: subgroups of one world, points interleaved over rounds, with
/// and without communication.
ExitCode scale_command(Session& session);

/// `scalemark infer`: forward passes of independent replicas, one a rank.
ExitCode infer_command(Session& session);

/// `scalemark preflight`: health checks of the nodes that the ranks run on; also --pinning.
ExitCode preflight_command(Session& session);

}  // namespace scalemark
