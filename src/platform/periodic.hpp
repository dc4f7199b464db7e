// Calls a function periodically on a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace scalemark {

/// Calls `look` after `seconds`, and again after the number of seconds that it returns, until
/// stop() or destruction. The calls are made on a separate thread while mutex() is held.
class Periodic {
 public:
  Periodic(double seconds, std::function<double()> look)
      : look_(std::move(look)),
        thread_([this, seconds](const std::stop_token& stop) { run(stop, seconds); }) {}

  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  std::mutex& mutex() { return mutex_; }

 private:
  void run(const std::stop_token& stop, double seconds) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
      if (stop.stop_requested()) return;
      seconds = look_();
    }
  }

  std::function<double()> look_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace scalemark
