// --batch_size max, settled before anything is measured.
#pragma once

#include <optional>

#include "measure/batch_search.hpp"
#include "session/session.hpp"

namespace scalemark {

/// What one measurement is configured with: the session's configuration, or that of a curve or of
/// one of its points.
struct MeasuredConfig {
  LoadedConfig loaded;
  std::optional<BatchSearch> batch_search = {};  ///< how --batch_size max was found

  const ResolvedConfig& config() const { return loaded.config; }
};

/// Where the largest batch is asked for: finds it with all ranks of the session at once, by
/// training steps (forward passes of `infer` and --forward_only), and puts it into the
/// configuration. What was made for it is gone afterwards. `keeps_weights`: the run will hold a
/// copy of the weights (`scale`). Throws AgreedError.
MeasuredConfig choose_batch(Session& session, LoadedConfig loaded, bool keeps_weights);

}  // namespace scalemark
