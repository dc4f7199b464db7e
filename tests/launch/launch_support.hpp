// Real child processes for the tests of the supervisor.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include "support/in_child.hpp"
#include "support/test_folder.hpp"

namespace scalemark {

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

}  // namespace scalemark
