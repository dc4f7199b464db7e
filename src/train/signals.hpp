// The stop flag that signals set; every loop reads it at its step boundaries.
#pragma once

namespace scalemark {

/// Set by SIGTERM, SIGUSR1 and SIGINT handlers; read by the agreed stop.
void install_stop_signals();
bool stop_requested();

}  // namespace scalemark
