// The stop flag that signals set; every loop reads it at its step boundaries.
#pragma once

namespace scalemark {

/// From here on SIGTERM, SIGUSR1 and SIGINT set the flag, which starts unset.
void install_stop_signals();
bool stop_requested();

}  // namespace scalemark
