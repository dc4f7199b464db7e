// See event_lines.hpp.
#include "event_lines.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "streams.hpp"

namespace scalemark {
namespace {
std::atomic<bool> used = false;
}  // namespace

void use_event_lines() { used = true; }
bool uses_event_lines() { return used; }

void write_event(std::string_view event, const Json& fields) noexcept {
  try {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    Json line = {{"event", event}, {"time", now.count()}};
    line.update(fields);
    write_whole(STDERR_FILENO, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (...) {  // no memory: what was to be said is lost, and nothing else
  }
}

}  // namespace scalemark
