// Deadlines of a rank: the watchdog names who hangs in which phase, also where MPI itself hangs.
#pragma once

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

/// The deadline of a rank: every phase (start-up, a collective, a step) must end within
/// `timeout_seconds`; of ranks but the first 3 s later, so that rank 0, where it can, leaves a
/// record that says so. Runs as a thread of its own so that it works where MPI itself hangs. Time
/// in which this process itself was stopped (SIGSTOP, a suspended job) does not count. One per
/// process. On expiry it asks the MPI thread for a roll-call (who answers, in which phase and step,
/// who is silent), prints rank, phase, last step and the roll-call to stderr, lets LastWords speak,
/// aborts the job with exit code 5, and leaves by _exit(5) 5 s after the abort began.
class Watchdog {
 public:
  explicit Watchdog(double timeout_seconds);
  ~Watchdog();
  /// Enters a phase; the clock starts anew. `step` < 0 keeps the last step.
  void enter(const char* phase, long step = -1);
  /// enter(phase), and the phase before.
  const char* exchange(const char* phase);
  Progress progress() const;
  void set_timeout(double seconds);
  /// Called every second from the watching thread, for as long as this process runs.
  void set_beat(std::function<void()> beat);
  double timeout() const;
  /// Who this rank is in messages, e.g. "rank 1 of 4 on n0". Until then: what the launcher's
  /// variables say.
  void set_identity(std::string identity);
  /// The MPI thread, once it exists, gives its roll-call and abort here.
  void set_roll_call(std::function<std::string()> roll_call);
  void set_abort(std::function<void(int exit_code)> abort);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Enters a phase for the lifetime of the scope and then returns to the phase before, with a fresh
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

}  // namespace scalemark
