// The stop flag that signals set: the measured loop ends at a step boundary that all ranks agree
// on.
#include "train/signals.hpp"

#include <csignal>

namespace scalemark {
namespace {

volatile std::sig_atomic_t stop_flag = 0;
extern "C" void request_stop(int) { stop_flag = 1; }

}  // namespace

void install_stop_signals() {
  stop_flag = 0;
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) sigaction(signal, &action, nullptr);
}

bool stop_requested() { return stop_flag != 0; }

}  // namespace scalemark
