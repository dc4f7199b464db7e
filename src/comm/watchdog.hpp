// Enforces deadlines of a rank. The watchdog reports which rank hangs in which phase, also where
// MPI itself hangs.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

namespace scalemark {

/// What a rank is doing, for deadlines and their messages. `phase` must be a string literal.
struct Progress {
  const char* phase = "start-up";
  long step = -1;
  double seconds_in_phase = 0;
};

/// Enforces the deadline of a rank: every phase (start-up, a collective, a step) must end within
/// `timeout_seconds`. Ranks other than the first have 3 s more, so that rank 0, where it can,
/// leaves a record of the timeout. The watchdog runs as a separate thread so that it works where
/// MPI itself hangs. Time in which this process itself was stopped (SIGSTOP, a suspended job) does
/// not count. There is one for each process.
///
/// On expiry it asks the MPI thread for a liveness probe (who answers, in which phase and step, who
/// is silent), prints rank, phase, last step and the liveness probe to stderr, lets AbortHandler
/// run, aborts the job with exit code 5, and leaves by _exit(5) 5 s after the abort began.
class Watchdog {
 public:
  explicit Watchdog(double timeout_seconds);
  ~Watchdog();
  /// Enters a phase and restarts the clock. `step` < 0 keeps the last step.
  void enter(const char* phase, long step = -1);
  /// Enters a phase and returns the one before.
  const char* exchange(const char* phase);
  Progress progress() const;
  void set_timeout(double seconds);
  /// Sets a function that the watching thread calls every second, as long as this process runs.
  void set_beat(std::function<void()> beat);
  double timeout() const;
  /// Sets how messages name this rank, for example "rank 1 of 4 on n0". Until then they use the
  /// variables of the launcher.
  void set_identity(std::string identity);
  /// Sets the liveness probe and the abort, which the MPI thread provides once it exists.
  void set_liveness_probe(std::function<std::string()> liveness_probe);
  void set_abort(std::function<void(int exit_code)> abort);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Enters a phase for the lifetime of the scope, then returns to the phase before and restarts the
/// clock.
class PhaseScope {
 public:
  PhaseScope(Watchdog& watchdog, const char* phase)
      : watchdog_(watchdog), before_(watchdog.exchange(phase)) {}
  ~PhaseScope() { watchdog_.enter(before_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Watchdog& watchdog_;
  const char* before_;
};

/// The phase of a job in which the root reads or writes files and the others wait for it. It may
/// take ten minutes where --timeout is shorter: nothing is measured meanwhile, and a file server
/// that stalls is to cost no result. For the lifetime of the scope, on all ranks.
class StoragePhase {
 public:
  explicit StoragePhase(Watchdog& watchdog)
      : watchdog_(watchdog),
        timeout_(watchdog.timeout()),
        before_(watchdog.exchange("result files")) {
    watchdog_.set_timeout(std::max(timeout_, kStorageSeconds));
  }
  ~StoragePhase() {
    watchdog_.enter(before_);  // first: what this phase took may be more than the old timeout
    watchdog_.set_timeout(timeout_);
  }
  StoragePhase(const StoragePhase&) = delete;
  StoragePhase& operator=(const StoragePhase&) = delete;

 private:
  static constexpr double kStorageSeconds = 600;
  Watchdog& watchdog_;
  double timeout_;
  const char* before_;
};

}  // namespace scalemark
