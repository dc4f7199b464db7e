// Real child processes for the tests of the supervisor.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

namespace scalemark {

/// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "launch_test_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  std::string write(const std::string& name, const std::string& text,
                    bool executable = false) const {
    const auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    if (executable) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Waits until `path` exists and is not empty; false after ten seconds.
inline bool appears(const std::string& path) {
  for (int i = 0; i < 1000; ++i) {
    if (!read_text(path).empty()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// True while a process has this id and is no zombie.
inline bool alive(const std::string& pid) {
  const std::string stat = read_text("/proc/" + pid + "/stat");
  const std::size_t end = stat.rfind(") ");
  return end != stat.npos && stat[end + 2] != 'Z';
}

/// Runs `body` in a process of its own, calls `meanwhile` with its id, and returns its exit code
/// (128+n for a signal). Signals to a test program with threads could reach the wrong one.
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
