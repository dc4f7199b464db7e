// Measurements in processes of their own that begin at the same moment (scalemark instances), or
// that take turns (scalemark gate): each says when its warm-up is over and waits until the others
// are there. A line is a socket, so that each side sees the end of the other.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/clock.hpp"

namespace scalemark {

// Where lines between measurements and whoever started them meet: a socket in a folder of this
// machine, or a port for ranks on other hosts.

/// The descriptor of a line to the address of a LineListener, closed on exec. EnvironmentError
/// where nobody listens there.
int connect_line(const std::string& address);

/// The end that is called. Throws EnvironmentError where no socket is to be had.
class LineListener {
 public:
  /// A socket at `path`, for processes of this machine; messages keep their bounds.
  explicit LineListener(const std::filesystem::path& path);
  /// A port on all addresses of this host; a stream. Who calls says token() first, which its
  /// address contains, and is answered with kHere.
  LineListener();
  ~LineListener();
  LineListener(LineListener&& other) noexcept;
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }  ///< empty: nothing need be said
  int descriptor() const { return socket_; }
  /// The next who calls; -1 where nobody does.
  int accept() const;

 private:
  std::string address_, token_;
  int socket_ = -1;
};

// Internal to rendezvous/: what both ends of a line between a measurement and whoever started it
// say.

inline constexpr char kReady = 'r';   ///< to begin, or to go on
inline constexpr char kEnded = 'e';   ///< measured; nobody else is to be disturbed by what follows
inline constexpr char kWindow = 'w';  ///< when it was; a ToldWindow follows
inline constexpr char kGo = 'g';
inline constexpr char kHere = 'h';  ///< the token was right (LineListener)

inline void close_line(int& line) {
  if (line >= 0) close(line);
  line = -1;
}

/// False where the other side has gone.
inline bool send_on(int line, const void* message, std::size_t bytes) {
  return send(line, message, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

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

// Two jobs that measure in turns: while the ranks of one compute, those of the other sleep. What
// the machine does in between meets both alike, so that the ratio of their rates is surer than that
// of two jobs one after the other (docs/gate.md).

/// The end of whoever starts both jobs; their ranks run on this host. Nobody measures before all
/// ranks of both are ready. Then turns go to the first job, the second, the second, the first, and
/// so on, which takes a steady drift out as well; a job that has ended leaves its turns to the
/// other, and both are let go when both have ended.
class TurnGiver {
 public:
  /// `ranks` of each job. The sockets lie in `folder`. Throws EnvironmentError.
  TurnGiver(const std::filesystem::path& folder, const std::array<int, 2>& ranks);
  ~TurnGiver();
  TurnGiver(const TurnGiver&) = delete;
  TurnGiver& operator=(const TurnGiver&) = delete;

  /// For SMK_INTERNAL_TURNS of a job.
  std::string address(std::size_t job) const { return jobs_[job].listener->address(); }
  /// Descriptors on which something may be said.
  std::vector<int> inputs() const;
  /// Hears what was said and gives the next turn. Call it whenever an input has something.
  void update();

  std::size_t turns(std::size_t job) const { return jobs_[job].turns; }

 private:
  struct Line {
    int socket = -1;
    char word = 0;  ///< what it waits with; 0: it computes
  };
  struct Job {
    std::unique_ptr<LineListener> listener;
    std::size_t ranks = 0, turns = 0;
    std::vector<Line> lines = {};

    /// All ranks are there and wait.
    bool waits() const;
    /// ... or are gone; nobody of it will measure any more.
    bool has_ended() const;
    void accept_ranks();
    void hear();
    void go();
    void close_lines();
  };

  std::size_t next_job();

  std::array<Job, 2> jobs_;
  std::size_t turn_ = 0;
};

}  // namespace scalemark
