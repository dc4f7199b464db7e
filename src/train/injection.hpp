// Deliberate faults of the training loop (--inject): nan_loss, delay, busy, kill, stop,
// device_fault.
#pragma once

#include <ATen/ATen.h>

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
  /// At that step device_fault has `device` write where it has no memory, after which every call of
  /// CUDA fails. Throws ConfigError on the CPU, which would take the process.
  void before_step(long step, at::Device device = at::kCPU) const;
  /// True from the injection's step on: the loss must become NaN.
  bool nan_loss(long step) const;

 private:
  std::optional<Injection> fault_;
};

}  // namespace scalemark
