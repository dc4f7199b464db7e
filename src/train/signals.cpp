// Implements the stop flag that signals set. The measured loop ends at a step boundary on which all
// ranks agree.
#include "train/signals.hpp"

#include <algorithm>
#include <array>
#include <csignal>

#include "platform/platform.hpp"

namespace scalemark {
namespace {

volatile std::sig_atomic_t stop_flag = 0;
extern "C" void request_stop(int) { stop_flag = 1; }

std::array<bool, kStopSignals.size()> ignored{};

}  // namespace

void install_stop_signals() {
  stop_flag = 0;
  std::ranges::transform(kStopSignals, ignored.begin(), is_ignored);
  keep_stop_signals();
  const sigset_t held = stop_signal_set();
  pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

void keep_stop_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    const int signal = kStopSignals[i];
    action.sa_handler = ignored[i] ? SIG_IGN : request_stop;
    // A second Ctrl-C ends the process at once.
    action.sa_flags = signal == SIGINT ? static_cast<int>(SA_RESTART | SA_RESETHAND) : SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

bool stop_requested() { return stop_flag != 0; }

}  // namespace scalemark
