// Runs the trials of `infer --mode server`, by all ranks at rates that they agree on.
#pragma once

#include <optional>

#include "measure/server.hpp"
#include "session/session.hpp"
#include "train/inferencer.hpp"

namespace scalemark {

struct ServedTrials {
  Samples samples;                   ///< of this rank in the trial that counts
  std::optional<RateSearch> search;  ///< without --arrival_rate
};

/// Warms up, then runs one trial at --arrival_rate, or as many as a search takes; of these the one
/// that confirmed the rate counts, or else the last. Each rank is offered an equal share of the
/// rate, in a stream of its own. All ranks call it.
ServedTrials serve_trials(Session& session, Inferencer& inferencer, const ResolvedConfig& config);

}  // namespace scalemark
