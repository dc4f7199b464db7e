// Deliberate faults of the training loop (--inject): nan_loss, delay, busy, kill, stop.
#pragma once

#include <optional>

#include "config/run_config.hpp"

namespace scalemark {

class InjectedFault {
 public:
  InjectedFault() = default;  ///< none
  /// Does nothing unless `injection` names this rank.
  InjectedFault(const std::optional<Injection>& injection, int rank);
  /// Before `step` (0-based, warm-up included): sleeps (delay) or uses so much CPU time (busy) at
  /// every step from the injection's on, or raises SIGKILL or SIGSTOP on this process at that step.
  void before_step(long step) const;
  /// True from the injection's step on: the loss must become NaN.
  bool nan_loss(long step) const;

 private:
  std::optional<Injection> fault_;
};

}  // namespace scalemark
