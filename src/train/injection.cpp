// See injection.hpp.
#include "train/injection.hpp"

#include <chrono>
#include <csignal>
#include <thread>

namespace scalemark {

InjectedFault::InjectedFault(const std::optional<Injection>& injection, int rank) {
  if (injection && (injection->rank < 0 || injection->rank == rank)) fault_ = injection;
}

void InjectedFault::before_step(long step) const {
  if (!fault_) return;
  if (fault_->kind == "delay" && step >= fault_->step)
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(fault_->milliseconds));
  if (fault_->kind == "kill" && step == fault_->step) std::raise(SIGKILL);
  if (fault_->kind == "stop" && step == fault_->step) std::raise(SIGSTOP);
}

bool InjectedFault::nan_loss(long step) const {
  return fault_ && fault_->kind == "nan_loss" && step >= fault_->step;
}

}  // namespace scalemark
