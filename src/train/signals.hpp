// Provides the stop flag that signals set. Every loop reads it at its step boundaries.
#pragma once

namespace scalemark {

/// From here on the stop signals (platform/platform.hpp) set the flag, which starts unset;
/// those that the front door has held back arrive now. Ignored ones stay ignored.
void install_stop_signals();
bool stop_requested();

}  // namespace scalemark
