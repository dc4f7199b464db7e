// Settles --batch_size max before anything is measured.
#pragma once

#include <optional>

#include "measure/batch_search.hpp"
#include "session/session.hpp"

namespace scalemark {

/// Holds what one measurement is configured with: the configuration of the session, of a curve, or
/// of one point of a curve.
struct MeasuredConfig {
  LoadedConfig loaded;
  std::optional<BatchSearch> batch_search = {};  ///< how --batch_size max was found

  const ResolvedConfig& config() const { return loaded.config; }
};

/// Finds the largest batch, where it is asked for, and puts it into the configuration. All ranks of
/// the session search at once, by training steps (by forward passes for `infer` and
/// --forward_only), and what was allocated for the search is freed afterwards. `keeps_weights` says
/// that the run will hold a copy of the weights (`scale` does). Throws AgreedError.
MeasuredConfig choose_batch(Session& session, LoadedConfig loaded, bool keeps_weights);

}  // namespace scalemark
