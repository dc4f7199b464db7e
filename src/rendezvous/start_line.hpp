// Measurements in processes of their own that begin at the same moment (scalemark instances), or
// that take turns (scalemark gate): each says when its warm-up is over and waits until the others
// are there. A line is a socket, so that each side sees the end of the other.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/clock.hpp"
#include "rendezvous/line_address.hpp"

namespace scalemark {

/// The end of a process that measures. Where nobody holds the other end, nothing is said and
/// nothing waited for.
class StartLine {
 public:
  /// Connects to the address of a Starter in SMK_INTERNAL_START_LINE or, to take turns, of a
  /// TurnGiver in SMK_INTERNAL_TURNS. Throws EnvironmentError where it leads nowhere.
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
  /// unset where nobody of this host does.
  std::optional<int> starter() const;
  /// Says that the measuring is over, and returns when it is over everywhere: what a process does
  /// at its end would disturb the others. Otherwise as wait().
  void end(const std::function<bool()>& leaves);
  /// Says when the loop ran, on this host's clock.
  void report(const Window& window);

 private:
  void await_go(char word, const std::function<bool()>& leaves);

  int line_ = -1;
  bool takes_turns_ = false;
  double go_heard_ = 0;  ///< seconds of this host's clock
};

/// Of measuring, between two waits of a line that takes turns: short against the seconds in which
/// machines change their speed, long against a hand-over (some 0.1 ms).
inline constexpr double kTurnSeconds = 0.05;

/// Of whoever starts the jobs. All ranks of all jobs are let go at once, when every one is ready.
class Starter {
 public:
  /// `ranks` of each job. The lines of this machine are sockets in `folder`; `hosts_apart`: ports
  /// of this host for ranks on any. Throws EnvironmentError.
  Starter(const std::filesystem::path& folder, const std::vector<int>& ranks, bool hosts_apart);
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// Names the address of its lines to the ranks of a job: variable and value.
  std::pair<std::string, std::string> variable(std::size_t job) const;
  /// Descriptors on which something may be said.
  std::vector<int> inputs() const;
  /// Hears what was said and lets all go when all are ready. Call it whenever an input has
  /// something.
  void update();

  bool has_started() const { return started_; }
  bool is_ready(std::size_t job) const;
  /// From the first start to the last end of its ranks, once all have said it, on this host's
  /// clock. Of a rank on another host the offset of its clock is half known from the
  /// word to go, which it heard after it was said, and half from the window, which was heard after
  /// the rank said it: their mean is wrong by less than half the time that both took.
  std::optional<Window> window(std::size_t job) const;

 private:
  struct Line {
    int socket = -1;
    std::string heard = {};  ///< and not understood yet
    bool known = false, ready = false;
    std::optional<Window> window = {};
  };
  struct Job {
    LineListener listener;
    std::size_t ranks;
    std::vector<Line> lines = {};
  };
  void hear(const std::string& token, Line& line) const;
  /// False where the line says what no rank would.
  bool understand(const std::string& token, Line& line) const;

  std::vector<Job> jobs_;
  bool hosts_apart_, started_ = false;
  double go_said_ = 0;
};

}  // namespace scalemark
