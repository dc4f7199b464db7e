// Work in a process of its own, for tests of what ends or changes a process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace scalemark {

/// Calls `meanwhile` with the process's id; returns the exit code of `body` (128+n for a signal).
/// Signals to a test program with threads could reach the wrong one.
inline int in_child(const std::function<int()>& body,
                    const std::function<void(pid_t)>& meanwhile = {}) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  if (meanwhile) meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace scalemark
