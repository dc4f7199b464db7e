// Ends the whole job from any rank and thread at any time, also where MPI, a lock or stderr hangs,
// and lets a rank leave a last message before.
#pragma once

#include <functional>
#include <string>

namespace scalemark {

/// Ends the whole job from any rank at any time. It writes the message to stderr, calls
/// MPI_Abort(exit_code), and calls _exit(exit_code) 5 s later whatever happens. Without MPI it
/// calls _exit. It does not return.
[[noreturn]] void abort_job(int exit_code, const std::string& message);

/// Registers what a rank does before an abort, whatever its exit code, during the lifetime of this
/// object. `say` is called once on a separate thread, for at most 2 s, for example to write a
/// record. It must not call MPI. There can be one such object at a time.
class AbortHandler {
 public:
  explicit AbortHandler(std::function<void(int exit_code, const std::string& message)> say);
  ~AbortHandler();
  AbortHandler(const AbortHandler&) = delete;
  AbortHandler& operator=(const AbortHandler&) = delete;
};

// The functions below are for comm/ alone.

/// Defers what a failing rank cannot do while its exception unwinds: as long as the cause has not
/// been reported, nothing may wait, and peers must not see an error. abort_job() calls `release`
/// once the job is being aborted, RankGroup::finalize() once all ranks have arrived there.
void leave_behind(std::function<void()> release);
void release_what_was_left();

/// Sets how the job is aborted once MPI runs. With an empty hook, abort_job() leaves by _exit.
void set_abort_hook(std::function<void(int exit_code)> hook);
bool abort_under_way() noexcept;
/// Blocks forever. Threads that encounter an abort in progress call it; the process ends within 5
/// s.
[[noreturn]] void await_exit() noexcept;

}  // namespace scalemark
