// Watches the deadline of every phase on a thread that needs nothing from MPI.
#include "comm/watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/abort.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds tick{0.25};
constexpr Seconds beat_every{1.0};
constexpr Seconds stopped_if_late{2.0};  // a tick this late means that this process was stopped
constexpr double after_rank_0 = 3;       // seconds for rank 0 to leave a record before the job ends
constexpr double longest_timeout = 1e8;  // seconds; prevents an overflow of time points

std::string identity_from_launcher() {
  if (const char* rank = announced_rank()) return fmt::format("rank {} on {}", rank, host_name());
  return fmt::format("the process {} on {}", getpid(), host_name());
}

}  // namespace

struct Watchdog::Impl {
  mutable std::mutex mutex;
  std::condition_variable changed;
  const char* phase = "start-up";
  long step = -1;
  Clock::time_point entered = Clock::now();
  double timeout;
  bool stop = false;
  std::string identity = identity_from_launcher();
  const bool is_first = rank_before_mpi() == 0;
  std::function<std::string()> liveness_probe;
  std::function<void()> beat;
  std::thread thread;

  explicit Impl(double seconds) : timeout(std::clamp(seconds, 0.0, longest_timeout)) {}

  /// Returns the seconds that a phase may take on this rank.
  double deadline() const { return timeout + (is_first ? 0 : after_rank_0); }

  double seconds_in_phase() const { return Seconds(Clock::now() - entered).count(); }

  void watch() {
    std::unique_lock lock(mutex);
    auto last_tick = Clock::now();
    auto last_beat = Clock::time_point::min();
    while (!stop) {
      if (beat && Clock::now() - beat_every > last_beat) {
        last_beat = Clock::now();
        lock.unlock();
        beat();
        lock.lock();
      }
      if (seconds_in_phase() > deadline()) {
        lock.unlock();
        expire();
      }
      changed.wait_for(lock, std::min(tick, Seconds(deadline() - seconds_in_phase() + 1e-3)));
      const auto now = Clock::now();
      if (now - last_tick > stopped_if_late) entered = std::min(now, entered + (now - last_tick));
      last_tick = now;
    }
  }

  [[noreturn]] void expire() {
    std::unique_lock lock(mutex);
    std::string message = fmt::format("timeout: {} spent {:.1f} s in phase '{}' (last step: {})",
                                      identity, seconds_in_phase(), phase,
                                      step < 0 ? std::string("none yet") : std::to_string(step));
    const auto ask = liveness_probe;
    const double allowed = timeout;
    lock.unlock();
    message += ask ? "\n" + ask() : "\n  MPI is not up yet: a rank may have left before it started";
    message += fmt::format(
        "\n  the job is aborted; if this phase may take longer, raise --timeout (now {:g} s)",
        allowed);
    abort_job(static_cast<int>(ExitCode::timeout), message);
  }
};

Watchdog::Watchdog(double timeout_seconds) : impl_(std::make_unique<Impl>(timeout_seconds)) {
  impl_->thread = std::thread([this] { impl_->watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
  if (abort_under_way()) await_exit();
}

void Watchdog::enter(const char* phase, long step) {
  const std::lock_guard lock(impl_->mutex);
  impl_->phase = phase;
  impl_->entered = Clock::now();
  if (step >= 0) impl_->step = step;
}

const char* Watchdog::exchange(const char* phase) {
  const std::lock_guard lock(impl_->mutex);
  impl_->entered = Clock::now();
  return std::exchange(impl_->phase, phase);
}

Progress Watchdog::progress() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->phase, impl_->step, impl_->seconds_in_phase()};
}

void Watchdog::set_timeout(double seconds) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->timeout = std::clamp(seconds, 0.0, longest_timeout);
  }
  impl_->changed.notify_all();
}

void Watchdog::set_beat(std::function<void()> beat) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->beat = std::move(beat);
  }
  impl_->changed.notify_all();
}

double Watchdog::timeout() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->timeout;
}

void Watchdog::set_identity(std::string identity) {
  const std::lock_guard lock(impl_->mutex);
  impl_->identity = std::move(identity);
}

void Watchdog::set_liveness_probe(std::function<std::string()> liveness_probe) {
  const std::lock_guard lock(impl_->mutex);
  impl_->liveness_probe = std::move(liveness_probe);
}

void Watchdog::set_abort(std::function<void(int)> abort) { set_abort_hook(std::move(abort)); }

}  // namespace scalemark
