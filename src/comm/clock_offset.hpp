// How far the clocks of ranks are apart, so that what they note down can lie on one axis of time.
// LibTorch-free.
#pragma once

#include <functional>

#include "comm/rank_group.hpp"
#include "measure/clock.hpp"

namespace scalemark {

/// Of this rank's clock against rank 0's.
struct ClockOffset {
  double measured_at = 0;          ///< by this rank's clock, s
  double seconds = 0;              ///< this clock less rank 0's, at the same moment
  double uncertainty_seconds = 0;  ///< the true offset is at most so far from it
};

/// Rank 0 asks every other rank in turn what its clock says, and takes of `rounds` answers the one
/// that came back soonest: it was given between question and answer, so half of that round trip
/// bounds the error (Cristian 1989). Collective; the others sleep meanwhile. Throws CommError.
ClockOffset measure_clock_offset(RankGroup& group,
                                 const std::function<double()>& clock = steady_seconds,
                                 int rounds = 50);

/// Clocks drift apart, so their offset is measured before and after what is to be aligned.
struct ClockAlignment {
  ClockOffset before, after;

  /// Rank 0's clock at the moment when this rank's says `seconds`, interpolated between the two.
  double on_rank_0(double seconds) const;
  /// The larger one of the two.
  double uncertainty_seconds() const;
};

}  // namespace scalemark
