// The signals that ask a program of ours to stop, one list for ranks and supervisors.
#pragma once

#include <array>
#include <csignal>

namespace scalemark {

/// SIGHUP: the terminal is gone. SIGUSR1: what launchers and Slurm pass on to ranks.
inline constexpr std::array kStopSignals{SIGTERM, SIGINT, SIGHUP, SIGUSR1};

/// Our parent had us ignore it, as nohup does, and a shell for what it starts in the background.
inline bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

inline sigset_t stop_signal_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) sigaddset(&set, signal);
  return set;
}

}  // namespace scalemark
