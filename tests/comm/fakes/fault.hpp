// The one fault that a fake library is told to have, by an environment variable
// "WHAT:RANK:N": the N-th time that WHAT is about to happen on that rank (the first, where N is
// left out).
#pragma once

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string>

namespace scalemark::fakes {

class Fault {
 public:
  explicit Fault(const char* variable) {
    const char* text = std::getenv(variable);
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = std::getenv("PMI_RANK");
    std::istringstream words(text ? text : "");
    std::string whose, at;
    std::getline(words, what_, ':');
    std::getline(words, whose, ':');
    std::getline(words, at, ':');
    if (whose != (rank ? rank : "0")) what_.clear();
    if (!at.empty()) left_ = std::stol(at);
  }
  /// Whether it is this time.
  bool strikes(const std::string& what) { return what == what_ && --left_ == 0; }

 private:
  std::string what_;
  std::atomic<long> left_{1};
};

}  // namespace scalemark::fakes
