// --batch_size max, settled before anything is measured.
#pragma once

#include "session/session.hpp"

namespace scalemark {

/// Where the largest batch is asked for: finds it with all ranks of the session at once, by
/// training steps (forward passes of `infer` and --forward_only), puts it into the configuration
/// and keeps how it was found in `session.batch_search`. What was made for it is gone afterwards.
/// `keeps_weights`: the run will hold a copy of the weights (`scale`). Throws AgreedError.
void choose_batch(Session& session, bool keeps_weights);

}  // namespace scalemark
