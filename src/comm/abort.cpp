// Implements abort_job(): it has the message printed, lets AbortHandler run, calls MPI_Abort, and
// calls _exit 5 s after it began even if any of these hangs.
#include "comm/abort.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "streams.hpp"

namespace scalemark {
namespace {

constexpr std::chrono::seconds hard_exit_after{5};
constexpr std::chrono::seconds handler_limit{2};
constexpr double print_limit = 1;  // seconds

struct AbortState {
  std::atomic<bool> under_way{false};
  std::mutex mutex;
  std::function<void(int)> abort;
  std::function<void(int, const std::string&)> handler;
  std::vector<std::function<void()>> left_behind;
};

// There is one state for each process. It is never destroyed, since an abort may come while static
// objects are being destroyed.
AbortState& state() {
  static auto* const it = new AbortState;
  return *it;
}

template <typename F>
void start_detached(F f, int exit_code) {
  try {
    std::thread(std::move(f)).detach();
  } catch (const std::system_error&) {
    _exit(exit_code);  // without a thread nothing guards against a hang
  }
}

void call_handler(const std::function<void(int, const std::string&)>& say,
                  const std::string& message, int exit_code) {
  if (!say) return;
  struct Done {
    std::mutex mutex;
    std::condition_variable changed;
    bool yes = false;
  };
  const auto done = std::make_shared<Done>();
  start_detached(
      [done, say, message, exit_code] {
        try {
          say(exit_code, message);
        } catch (...) {  // the abort goes on
        }
        const std::lock_guard lock(done->mutex);
        done->yes = true;
        done->changed.notify_all();
      },
      exit_code);
  std::unique_lock lock(done->mutex);
  done->changed.wait_for(lock, handler_limit, [&] { return done->yes; });
}

}  // namespace

void set_abort_hook(std::function<void(int)> hook) {
  const std::lock_guard lock(state().mutex);
  state().abort = std::move(hook);
}

void leave_behind(std::function<void()> release) {
  const std::lock_guard lock(state().mutex);
  state().left_behind.push_back(std::move(release));
}

void release_what_was_left() {
  std::unique_lock lock(state().mutex);
  const auto left = std::exchange(state().left_behind, {});
  lock.unlock();
  for (const auto& release : left) release();
}

AbortHandler::AbortHandler(std::function<void(int, const std::string&)> say) {
  const std::lock_guard lock(state().mutex);
  state().handler = std::move(say);
}

AbortHandler::~AbortHandler() {
  if (abort_under_way()) await_exit();  // this thread may be using what is destroyed next
  const std::lock_guard lock(state().mutex);
  state().handler = nullptr;
}

bool abort_under_way() noexcept { return state().under_way.load(); }

void await_exit() noexcept {
  while (true) pause();
}

void abort_job(int exit_code, const std::string& message) {
  if (state().under_way.exchange(true)) await_exit();  // the first one decides the exit code
  // The thread is started before anything that may block, such as a handler.
  start_detached(
      [exit_code] {
        std::this_thread::sleep_for(hard_exit_after);
        _exit(exit_code);
      },
      exit_code);
  say_error(message);
  std::function<void(int)> abort;
  std::function<void(int, const std::string&)> handler;
  {
    const std::lock_guard lock(state().mutex);
    abort = state().abort;
    handler = state().handler;
  }
  call_handler(handler, message, exit_code);
  finish_printing(print_limit);
  if (!abort) _exit(exit_code);
  abort(exit_code);
  release_what_was_left();
  await_exit();
}

}  // namespace scalemark
