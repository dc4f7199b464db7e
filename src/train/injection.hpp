// Implements deliberate faults of the training loop (--inject): nan_loss, delay, busy, kill, stop,
// device_fault.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "config/run_config.hpp"

namespace scalemark {

/// The deliberate fault of this rank, if there is one.
class InjectedFault {
 public:
  InjectedFault() = default;  ///< none
  /// Does nothing unless `injection` names this rank.
  InjectedFault(const std::optional<Injection>& injection, int rank);
  /// Causes the fault before `step` (0-based, warm-up included). delay sleeps and busy uses the
  /// same amount of CPU time at every step from the injection's on; kill and stop raise SIGKILL or
  /// SIGSTOP on this process at that step. device_fault makes `device` write at that step where it
  /// has no memory, after which every call of CUDA fails. Throws ConfigError for device_fault on
  /// the CPU, where it would end the process.
  void before_step(long step, at::Device device = at::kCPU) const;
  /// Returns true from the injection's step on, when the loss must become NaN.
  bool nan_loss(long step) const;

 private:
  std::optional<Injection> fault_;
};

}  // namespace scalemark
