// Which of LibTorch's operators, autograd functions and kernels of our own run, for tests that say
// what must and what must not.
#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace scalemark {

/// Notes the names of what runs on any thread while it lives. One at a time.
class RecordedOperators {
 public:
  RecordedOperators() {
    const std::lock_guard lock(mutex());
    names().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(note));
  }
  ~RecordedOperators() { at::removeCallback(handle_); }
  RecordedOperators(const RecordedOperators&) = delete;
  RecordedOperators& operator=(const RecordedOperators&) = delete;

  std::set<std::string> all() const {
    const std::lock_guard lock(mutex());
    return names();
  }
  /// Those of our own: operators as scalemark::x, autograd functions by the names of their classes.
  std::set<std::string> own() const {
    std::set<std::string> found = all();
    std::erase_if(
        found, [](const std::string& name) { return name.find("scalemark") == std::string::npos; });
    return found;
  }

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    const std::lock_guard lock(mutex());
    names().insert(call.name());
    return nullptr;
  }
  // LibTorch's callbacks are plain functions.
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::set<std::string>& names() {
    static std::set<std::string> all;
    return all;
  }

  at::CallbackHandle handle_;
};

}  // namespace scalemark
