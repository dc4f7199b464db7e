// Two jobs that measure in turns: while the ranks of one compute, those of the other sleep. What
// the machine does in between meets both alike, so that the ratio of their rates is surer than that
// of two jobs one after the other (docs/gate.md).
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/start_line.hpp"

namespace scalemark {

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
