// Finds out which other ranks still answer, and in which phase and step they are. It runs on the
// MPI thread as ordinary operations on a separate communicator, so a rank answers while it waits or
// computes. Internal to comm/.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi.hpp"
#include "comm/operations.hpp"
#include "comm/watchdog.hpp"

namespace scalemark {

/// Answers the questions of other ranks, and asks all of them.
class LivenessProbe {
 public:
  static constexpr std::chrono::milliseconds patience{1000};  ///< after which a rank is "silent"
  using Start = std::function<void(std::shared_ptr<Operation>)>;

  /// `start` passes an operation to the set of the MPI thread. All calls must be made while holding
  /// the MPI lock (MpiWorld).
  LivenessProbe(MPI_Comm communicator, std::vector<std::string> hosts, const Watchdog& watchdog,
                Start start);
  /// Asks all other ranks. `report` gets the text after `patience`, or earlier when all have
  /// answered.
  void ask(std::function<void(const std::string&)> report);
  void tick();
  /// Cancels the standing receive, before MPI_Finalize.
  void cancel();

 private:
  struct Answer {
    std::array<char, 32> phase{};
    std::int64_t step = -1;
    double seconds = 0;
  };
  void listen();
  void answer(int rank);
  std::string text() const;

  MPI_Comm communicator_;
  std::vector<std::string> hosts_;
  const Watchdog& watchdog_;
  Start start_;
  int rank_ = 0;
  MPI_Request question_ = MPI_REQUEST_NULL;
  bool closed_ = false;
  Clock::time_point asked_{};
  std::function<void(const std::string&)> report_;
  std::vector<std::shared_ptr<Answer>> answers_;  ///< indexed by rank
  std::vector<bool> answered_;
  int missing_ = 0;
};

}  // namespace scalemark
