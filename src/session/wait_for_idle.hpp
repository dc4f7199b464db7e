// Waits for a quiet machine before a measurement begins.
#pragma once

#include "session/session.hpp"

namespace scalemark {

/// Until no host of the group has been used by others for a second, or --wait_for_idle seconds have
/// passed, which is a warning; a stop ends it too. Nothing where the option is not set. Collective.
void wait_for_idle(Session& session, RankGroup& ranks);

}  // namespace scalemark
