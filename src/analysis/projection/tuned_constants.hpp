// What of a projection was chosen by how well it predicts published curves, and nothing else was.
// `projection_check --leave_one_out` chooses these numbers, and says how well such a choice does on
// a curve that had no part in it (docs/projection.md).
#pragma once

namespace scalemark {

struct TunedConstants {
  double evidence = 20;  ///< squared doublings of ranks after which half of a loss is believed
  double bend = 2;       ///< by how much each unseen doubling loses more than the one before
  double model_share_known = 0.3;    ///< of the cost model beside the trend: nominal link known
  double model_share_unknown = 0;    ///< and where it is not
  double drift_per_doubling = 0.15;  ///< of the truth from a prediction, relative, beyond the curve

  bool operator==(const TunedConstants&) const = default;
};

}  // namespace scalemark
