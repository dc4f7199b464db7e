// Synchronises measurements in separate processes, which begin at the same moment (scalemark
// instances) or are interleaved (scalemark gate). Each reports the end of its warm-up and waits
// until the others are ready. The connection is a socket, so each side notices when the other ends.
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

// Defines the addresses at which measurements connect to the process that started them: a socket in
// a folder of this machine, or a port for ranks on other hosts.

/// Connects to the address of a BarrierListener and returns the descriptor, which is closed on
/// exec. Throws EnvironmentError where nobody listens there.
int connect_barrier(const std::string& address);

/// Accepts connections. Throws EnvironmentError where no socket can be created.
class BarrierListener {
 public:
  /// Listens on a socket at `path`, for processes of this machine. It preserves message boundaries.
  explicit BarrierListener(const std::filesystem::path& path);
  /// Listens on a port on all addresses of this host, as a stream. A client first sends token(),
  /// which the address contains, and gets the answer kHere.
  BarrierListener();
  ~BarrierListener();
  BarrierListener(BarrierListener&& other) noexcept;
  BarrierListener(const BarrierListener&) = delete;
  BarrierListener& operator=(const BarrierListener&) = delete;

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }  ///< empty: nothing need be said
  int descriptor() const { return socket_; }
  /// Accepts the next connection and returns its descriptor, or -1 where there is none.
  int accept() const;

 private:
  std::string address_, token_;
  int socket_ = -1;
};

// Defines the messages between a measurement and the process that started it. It is internal to
// rendezvous/.

inline constexpr char kReady = 'r';   ///< ready to begin, or to continue
inline constexpr char kEnded = 'e';   ///< measured; nobody else is to be disturbed by what follows
inline constexpr char kWindow = 'w';  ///< when it was; a ToldWindow follows
inline constexpr char kGo = 'g';
inline constexpr char kHere = 'h';  ///< the token was right (BarrierListener)

inline void close_line(int& line) {
  if (line >= 0) close(line);
  line = -1;
}

/// Sends a message. Returns false where the other side is gone.
inline bool send_on(int line, const void* message, std::size_t bytes) {
  return send(line, message, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

/// The side of a process that measures. Where no process is at the other side, nothing is sent and
/// nothing is waited for.
class StartBarrier {
 public:
  /// Connects to the address of a Starter in SMK_INTERNAL_START_BARRIER or, for an interleaved
  /// measurement, of an Interleaver in SMK_INTERNAL_TURNS. Throws EnvironmentError where the
  /// address leads nowhere.
  explicit StartBarrier(const std::map<std::string, std::string>& environment);
  ~StartBarrier();
  StartBarrier(const StartBarrier&) = delete;
  StartBarrier& operator=(const StartBarrier&) = delete;

  /// Reports that this measurement is ready, and returns when all are. `leaves` is asked several
  /// times a second and may end the wait early. Throws RunError where the other end is gone.
  void wait(const std::function<bool()>& leaves);
  /// Returns whether the measurement is interleaved: wait() is then called again after about
  /// `slice_seconds` of measuring each time, and end() at the end.
  bool interleaved() const { return interleaved_; }
  /// Returns the process at the other side, an ancestor of all processes that are measured
  /// together. It is unset where that process is not on this host.
  std::optional<int> starter() const;
  /// Reports that the measurement is over, and returns when it is over everywhere, since what a
  /// process does at its end would disturb the others. `leaves` and the errors are those of wait().
  void end(const std::function<bool()>& leaves);
  /// Reports when the loop ran, on this host's clock.
  void report(const Window& window);

 private:
  void await_go(char word, const std::function<bool()>& leaves);

  int line_ = -1;
  bool interleaved_ = false;
  double go_heard_ = 0;  ///< seconds of this host's clock
};

/// The seconds of measuring between two waits of an interleaved measurement. They are short
/// compared with the seconds in which machines change their speed, and long compared with a
/// hand-over (about 0.1 ms).
inline constexpr double kSliceSeconds = 0.05;

/// The side of the process that starts the jobs. All ranks of all jobs are released at once, when
/// every one is ready.
class Starter {
 public:
  /// `ranks` holds the number of ranks of each job. The sockets of this machine are in `folder`;
  /// with `hosts_apart`, ports of this host serve ranks on any host. Throws EnvironmentError.
  Starter(const std::filesystem::path& folder, const std::vector<int>& ranks, bool hosts_apart);
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// Returns the variable and the value that tell the ranks of a job the address.
  std::pair<std::string, std::string> variable(std::size_t job) const;
  /// Returns the descriptors to poll for input.
  std::vector<int> inputs() const;
  /// Reads messages and releases all ranks when all are ready. Call it whenever an input is
  /// readable.
  void update();

  bool has_started() const { return started_; }
  bool is_ready(std::size_t job) const;
  /// Returns the time from the first start to the last end of the ranks of a job on this host's
  /// clock, once all have reported it. For a rank on another host, the offset of its clock has two
  /// bounds: the release, which it received after it was sent, and the report, which was received
  /// after the rank sent it. Their mean is wrong by less than half the time that both took.
  std::optional<Window> window(std::size_t job) const;

 private:
  struct Line {
    int socket = -1;
    std::string heard = {};  ///< received but not parsed yet
    bool known = false, ready = false;
    std::optional<Window> window = {};
  };
  struct Job {
    BarrierListener listener;
    std::size_t ranks;
    std::vector<Line> lines = {};
  };
  void hear(const std::string& token, Line& line) const;
  /// Handles one message. Returns false where it is not one that a rank sends.
  bool understand(const std::string& token, Line& line) const;

  std::vector<Job> jobs_;
  bool hosts_apart_, started_ = false;
  double go_said_ = 0;
};

// Interleaves two measurements: while the ranks of one compute, those of the other sleep. Changes
// of the machine affect both equally, so the ratio of their rates is more certain than that of two
// jobs one after the other (docs/gate.md).

/// The side of the process that starts both jobs, whose ranks run on this host. Nobody measures
/// before all ranks of both are ready. Then the order is first job, second, second, first, and so
/// on, which also cancels a steady drift. When one job has ended, the other has all further slices.
/// Both are released when both have ended.
class Interleaver {
 public:
  /// `ranks` holds the number of ranks of each job. The sockets are in `folder`. Throws
  /// EnvironmentError.
  Interleaver(const std::filesystem::path& folder, const std::array<int, 2>& ranks);
  ~Interleaver();
  Interleaver(const Interleaver&) = delete;
  Interleaver& operator=(const Interleaver&) = delete;

  /// Returns the value of SMK_INTERNAL_TURNS for a job.
  std::string address(std::size_t job) const { return jobs_[job].listener->address(); }
  /// Returns the descriptors to poll for input.
  std::vector<int> inputs() const;
  /// Reads messages and starts the next slice. Call it whenever an input is readable.
  void update();

  std::size_t slices(std::size_t job) const { return jobs_[job].slices; }

 private:
  struct Line {
    int socket = -1;
    char word = 0;  ///< the message with which it waits; 0: it computes
  };
  struct Job {
    std::unique_ptr<BarrierListener> listener;
    std::size_t ranks = 0, slices = 0;
    std::vector<Line> lines = {};

    /// Returns whether all ranks are connected and wait.
    bool waits() const;
    /// Returns whether all ranks are gone or have ended, so that none of them will measure any
    /// more.
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
