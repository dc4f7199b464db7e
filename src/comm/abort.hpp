// Internal to comm/: the state behind abort_job(), which must work from any thread at any time,
// also when MPI, a lock or stderr hangs.
#pragma once

#include <functional>
#include <string>

namespace scalemark {

/// How the job is aborted once MPI runs; empty: abort_job() leaves by _exit.
void set_abort_hook(std::function<void(int exit_code)> hook);
bool abort_under_way() noexcept;
/// Blocks for ever: for threads that meet an abort that is under way. The process ends within 5 s.
[[noreturn]] void await_exit() noexcept;

}  // namespace scalemark
