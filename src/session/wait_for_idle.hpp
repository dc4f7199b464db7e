// Waits for a quiet machine before a measurement begins.
#pragma once

#include "session/session.hpp"

namespace scalemark {

/// Waits until no host of the group has been used by others for a second, or until --wait_for_idle
/// seconds have passed, which is a warning; a stop ends it too. It does nothing where the option is
/// not set. All ranks call it.
void wait_for_idle(Session& session, RankGroup& ranks);

}  // namespace scalemark
