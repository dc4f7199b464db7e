// The one thread that owns all MPI calls of a process: initialises, starts nonblocking operations, tests them,
// answers roll-calls, finalises. Open MPI polls; this thread sleeps between tests, so it never steals the core that computes.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace scalemark {

/// What a rank is doing, for deadlines and their messages. `phase` must be a string literal.
struct Progress {
  const char* phase = "start-up";
  long step = -1;
  double seconds_in_phase = 0;
};

/// The deadline of a rank: every phase (start-up, a collective, a step) must end within `timeout_seconds`.
/// Runs as a thread of its own so that it works where MPI itself hangs. On expiry it asks the MPI thread for a roll-call
/// (who answers, in which phase and step, who is silent), prints rank, phase, last step and the roll-call to
/// stderr, calls `on_expiry`, aborts the job with exit code 5, and leaves by _exit(5) 5 s after the abort began.
class Watchdog {
 public:
  explicit Watchdog(double timeout_seconds);
  ~Watchdog();
  /// Enters a phase; the clock starts anew. `step` < 0 keeps the last step.
  void enter(const char* phase, long step = -1);
  Progress progress() const;
  /// Called once before an abort (any exit code), at most 2 s: e.g. write a record. Must not call MPI.
  void set_on_expiry(std::function<void(const std::string& message)> callback);
  void set_timeout(double seconds);
  double timeout() const;
  /// The MPI thread, once it exists, gives its roll-call and abort here.
  void set_roll_call(std::function<std::string()> roll_call);
  void set_abort(std::function<void(int exit_code)> abort);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Ends the whole job from any rank at any time: message to stderr, MPI_Abort(exit_code), and _exit(exit_code) 5 s
/// later whatever happens. Without MPI it is _exit. Does not return.
[[noreturn]] void abort_job(int exit_code, const std::string& message);

}  // namespace scalemark
