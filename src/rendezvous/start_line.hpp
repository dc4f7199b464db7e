// Measurements in processes of their own that begin at the same moment (scalemark instances), or
// that take turns (scalemark gate): each says when its warm-up is over and waits until the others
// are there. A line is a pair of sockets, so that each side sees the end of the other.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/clock.hpp"

namespace scalemark {

/// The end of a process that measures. Where nobody holds the other end, nothing is said and
/// nothing waited for.
class StartLine {
 public:
  /// Takes the descriptor that SMK_INTERNAL_START_LINE names; children do not inherit it. Or, to
  /// take turns, connects to the socket of a TurnGiver, whose path is in SMK_INTERNAL_TURNS. Throws
  /// EnvironmentError where neither leads anywhere.
  explicit StartLine(const std::map<std::string, std::string>& environment);
  ~StartLine();
  StartLine(const StartLine&) = delete;
  StartLine& operator=(const StartLine&) = delete;

  /// Says that this measurement is ready, and returns when all are. `leaves` is asked several times
  /// a second and may end the wait early. Throws RunError where the other end is gone.
  void wait(const std::function<bool()>& leaves);
  /// Whether to wait() again and again, for turns of about `turn_seconds` of measuring, and to
  /// end().
  bool takes_turns() const { return takes_turns_; }
  /// The process that holds the other end, an ancestor of all that are measured with this one;
  /// unset where nobody does.
  std::optional<int> starter() const;
  /// Says that the measuring is over, and returns when it is over everywhere: what a process does
  /// at its end would disturb the others. Otherwise as wait().
  void end(const std::function<bool()>& leaves);
  /// Says when the loop ran.
  void report(const Window& window);

 private:
  void await_go(char word, const std::function<bool()>& leaves);

  int line_ = -1;
  bool takes_turns_ = false;
};

/// Of measuring, between two waits of a line that takes turns: short against the seconds in which
/// machines change their speed, long against a hand-over (some 0.1 ms).
inline constexpr double kTurnSeconds = 0.05;

/// The ends of whoever starts the processes. All lines are let go at once, when every one is ready.
class Starter {
 public:
  /// Throws EnvironmentError where no sockets are to be had.
  explicit Starter(std::size_t lines);
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// In the process that is to have the line, before exec.
  void hand_over(std::size_t line) const;
  /// Descriptors on which something may be said.
  std::vector<int> inputs() const;
  /// Hears what was said and lets all go when all are ready. Call it after the processes were
  /// started and whenever an input has something.
  void update();

  bool has_started() const { return started_; }
  bool is_ready(std::size_t line) const { return lines_[line].ready; }
  std::optional<Window> window(std::size_t line) const { return lines_[line].window; }

 private:
  struct Line {
    int ours = -1, theirs = -1;
    bool ready = false;
    std::optional<Window> window;
  };
  void hear(Line& line);

  std::vector<Line> lines_;
  bool started_ = false;
};

}  // namespace scalemark
