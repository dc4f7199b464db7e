// Implements the stop flag that signals set. The measured loop ends at a step boundary on which all
// ranks agree.
#include "train/signals.hpp"

#include <csignal>

#include "platform/platform.hpp"

namespace scalemark {
namespace {

volatile std::sig_atomic_t stop_flag = 0;
extern "C" void request_stop(int) { stop_flag = 1; }

}  // namespace

void install_stop_signals() {
  stop_flag = 0;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  for (const int signal : kStopSignals) {
    action.sa_handler = is_ignored(signal) ? SIG_IGN : request_stop;
    // A second Ctrl-C ends the process at once.
    action.sa_flags = signal == SIGINT ? static_cast<int>(SA_RESTART | SA_RESETHAND) : SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
  const sigset_t held = stop_signal_set();
  pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

bool stop_requested() { return stop_flag != 0; }

}  // namespace scalemark
