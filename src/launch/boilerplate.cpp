// See boilerplate.hpp.
#include "launch/boilerplate.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace scalemark {
namespace {

constexpr std::size_t kDashes = 74;

/// Of Open MPI 4 (orterun, mpirun) and 5 (prterun).
constexpr std::array<std::string_view, 3> kOpenings{
    "Primary job  terminated normally, but",
    "detected that one or more processes exited with non-zero status",
    "MPI_ABORT was invoked on rank"};

bool is_of_dashes(std::string_view line) {
  return line.size() == kDashes && line.find_first_not_of('-') == line.npos;
}

bool may_become_dashes(std::string_view begin) {
  return begin.size() <= kDashes && begin.find_first_not_of('-') == begin.npos;
}

bool opens_a_block(std::string_view line) {
  return std::ranges::any_of(kOpenings,
                             [&](std::string_view words) { return line.find(words) != line.npos; });
}

}  // namespace

std::string Boilerplate::pass(std::string_view bytes) {
  std::string passed;
  waiting_ += bytes;
  for (;;) {
    const std::size_t end = waiting_.find('\n');
    const std::string_view line = std::string_view(waiting_).substr(0, end);
    if (end == waiting_.npos) break;
    if (inside_) {
      inside_ = !is_of_dashes(line);
      waiting_.erase(0, end + 1);
      continue;
    }
    if (!is_of_dashes(line)) {
      passed += take_line();
      continue;
    }
    const std::size_t next_end = waiting_.find('\n', end + 1);
    if (next_end == waiting_.npos) return passed;
    inside_ = opens_a_block(std::string_view(waiting_).substr(end + 1, next_end - end - 1));
    if (inside_)
      waiting_.erase(0, next_end + 1);
    else
      passed += take_line();
  }
  if (!inside_ && !may_become_dashes(waiting_)) passed += std::exchange(waiting_, "");
  return passed;
}

std::string Boilerplate::take_line() {
  std::string line = waiting_.substr(0, waiting_.find('\n') + 1);
  waiting_.erase(0, line.size());
  return line;
}

std::string Boilerplate::rest() {
  std::string text = std::exchange(waiting_, "");
  return inside_ ? "" : text;
}

}  // namespace scalemark
