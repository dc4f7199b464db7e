// Causes the deliberate faults of --inject at their step.
#include "train/injection.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <thread>

#include "error.hpp"

namespace scalemark {
namespace {

double thread_cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// Uses the CPU as slower code would. A sleep, or a loop without arithmetic, would leave the core to
// others.
void stay_busy(double milliseconds) {
  static std::array<float, 4096> values{};
  const double end = thread_cpu_milliseconds() + milliseconds;
  while (thread_cpu_milliseconds() < end)
    for (float& value : values) value = value * 0.5f + 1;
}

void write_nowhere(at::Device device) {
  if (device.is_cpu())
    throw ConfigError("--inject device_fault is a fault of a GPU: use --device cuda");
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  void* const nowhere = reinterpret_cast<void*>(std::uintptr_t{16});
  at::for_blob(nowhere, {1}).options(options).target_device(device).make_tensor().fill_(1);
}

}  // namespace

InjectedFault::InjectedFault(const std::optional<Injection>& injection, int rank) {
  if (injection && (injection->rank < 0 || injection->rank == rank)) fault_ = injection;
}

void InjectedFault::before_step(long step, at::Device device) const {
  if (!fault_) return;
  if (fault_->kind == "delay" && step >= fault_->step)
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(fault_->milliseconds));
  if (fault_->kind == "busy" && step >= fault_->step) stay_busy(fault_->milliseconds);
  if (fault_->kind == "kill" && step == fault_->step) std::raise(SIGKILL);
  if (fault_->kind == "stop" && step == fault_->step) std::raise(SIGSTOP);
  if (fault_->kind == "device_fault" && step == fault_->step) write_nowhere(device);
}

bool InjectedFault::nan_loss(long step) const {
  return fault_ && fault_->kind == "nan_loss" && step >= fault_->step;
}

}  // namespace scalemark
