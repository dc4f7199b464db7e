// Internal to comm/: who of the other ranks still answers, and in which phase and step. Runs on the
// MPI thread as ordinary operations on a communicator of its own, so a rank answers while it waits
// or computes.
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

class RollCall {
 public:
  static constexpr std::chrono::milliseconds patience{1000};  ///< after which a rank is "silent"
  using Start = std::function<void(std::shared_ptr<Operation>)>;

  /// `start` hands an operation to the MPI thread's set. All calls are made in turn (MpiWorld).
  RollCall(MPI_Comm communicator, std::vector<std::string> hosts, const Watchdog& watchdog,
           Start start);
  /// Asks all other ranks; `report` gets the text after `patience`, or earlier when all have
  /// answered.
  void ask(std::function<void(const std::string&)> report);
  void tick();
  /// Takes back the standing receive, before MPI_Finalize.
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
  std::vector<std::shared_ptr<Answer>> answers_;  ///< by rank
  std::vector<bool> answered_;
  int missing_ = 0;
};

}  // namespace scalemark
