// The end of the whole job, from any rank and thread at any time, also where MPI, a lock or stderr
// hangs; and what a rank still says before it.
#pragma once

#include <functional>
#include <string>

namespace scalemark {

/// Ends the whole job from any rank at any time: message to stderr, MPI_Abort(exit_code), and
/// _exit(exit_code) 5 s later whatever happens. Without MPI it is _exit. Does not return.
[[noreturn]] void abort_job(int exit_code, const std::string& message);

/// What a rank does before an abort, whatever its exit code, while this object lives: `say` is
/// called once, on a thread of its own, for at most 2 s: e.g. writes a record. It must not call
/// MPI. One at a time.
class LastWords {
 public:
  explicit LastWords(std::function<void(int exit_code, const std::string& message)> say);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

// For comm/ alone:

/// Keeps for the end what a failing rank cannot do while its exception unwinds: where the cause is
/// still unsaid, nothing may wait, nor let peers see an error. abort_job() does it once the job is
/// being aborted, RankGroup::finalize() once all ranks have come there.
void leave_behind(std::function<void()> release);
void release_what_was_left();

/// How the job is aborted once MPI runs; empty: abort_job() leaves by _exit.
void set_abort_hook(std::function<void(int exit_code)> hook);
bool abort_under_way() noexcept;
/// Blocks for ever: for threads that meet an abort that is under way. The process ends within 5 s.
[[noreturn]] void await_exit() noexcept;

}  // namespace scalemark
