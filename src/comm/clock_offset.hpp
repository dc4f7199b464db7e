// Measures how far the clocks of ranks differ, so that their times can be shown on one axis.
// LibTorch-free.
#pragma once

#include <functional>

#include "comm/rank_group.hpp"
#include "measure/clock.hpp"

namespace scalemark {

/// The offset of this rank's clock from that of rank 0.
struct ClockOffset {
  double measured_at = 0;          ///< time of this rank's clock, s
  double seconds = 0;              ///< this clock minus rank 0's, at that moment
  double uncertainty_seconds = 0;  ///< the true offset is at most so far from it
};

/// Measures the offset of every rank. Rank 0 asks one rank after the other for its clock and uses
/// the answer of `rounds` answers that came back soonest: it was given between question and answer,
/// so half of that round trip bounds the error (Cristian 1989). The call is collective; the other
/// ranks sleep meanwhile. Throws CommError.
ClockOffset measure_clock_offset(RankGroup& group,
                                 const std::function<double()>& clock = steady_seconds,
                                 int rounds = 50);

/// Holds two offsets. Clocks drift apart, so the offset is measured before and after what is to be
/// aligned.
struct ClockAlignment {
  ClockOffset before, after;

  /// Returns rank 0's clock at the moment when this rank's clock shows `seconds`, interpolated
  /// between the two offsets.
  double on_rank_0(double seconds) const;
  /// Returns the larger one of the two uncertainties.
  double uncertainty_seconds() const;
};

}  // namespace scalemark
