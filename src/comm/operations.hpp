// Defines started MPI operations, and the set of those that are tested together. It is internal to
// comm/.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi.hpp"
#include "measure/clock.hpp"

namespace scalemark {

/// Throws CommError naming the MPI call where `result` is not MPI_SUCCESS.
void check_mpi(int result, const char* call);

/// A started operation of one or more stages. `error` and `completed` are valid once it is `done`.
struct Operation {
  /// Starts a stage and returns its requests, while the MPI lock (MpiWorld) is held. It is kept
  /// until the operation ends, together with the buffers that it holds.
  using Post = std::function<std::vector<MPI_Request>()>;

  Operation() = default;
  explicit Operation(std::vector<Post> of) : stages(std::move(of)) {}

  std::vector<Post> stages;  ///< each starts when the requests of the one before are complete
  std::size_t next_stage = 0;
  std::function<void()> on_complete;  ///< called once, while holding the lock; may be empty
  std::size_t open_requests = 0;
  Clock::time_point posted = Clock::now();
  Clock::time_point completed{};
  std::atomic<bool> done{false};
  std::string error;  ///< empty: succeeded
};

/// The operations in flight. Use it only while holding the lock.
class Outstanding {
 public:
  void post(std::shared_ptr<Operation> operation);
  /// Makes one round of tests and returns the operations that completed in it.
  std::vector<std::shared_ptr<Operation>> test();
  std::size_t requests() const { return requests_.size(); }

 private:
  std::vector<MPI_Request> requests_;
  std::vector<std::shared_ptr<Operation>> owners_;            ///< owners of requests_, by index
  std::vector<std::shared_ptr<Operation>> finished_at_post_;  ///< between two rounds of tests
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  bool start_stages(const std::shared_ptr<Operation>& operation);
  std::vector<std::shared_ptr<Operation>> fail_all(int result);
  void drop_null_requests();
};

/// Determines how long a thread sleeps between rounds of MPI calls. Tests that find work shorten
/// the pause, since more is to come, but to no less than several times the duration of the round,
/// so that a core that computes is interrupted rarely and much is moved at once. Tests that find
/// none lengthen the pause. While a thread waits for an operation its core is free, and it may spin
/// for a moment.
class PollBackoff {
 public:
  explicit PollBackoff(Clock::time_point now = Clock::now()) : last_work_(now), last_call_(now) {}
  struct Situation {
    bool worked;  ///< the last round completed or moved something
    bool waited;  ///< a thread waits for an operation
    bool idle;    ///< nothing in flight except the wait for liveness probes
    std::chrono::duration<double> round{0};  ///< duration of the round; 0: unknown
  };
  std::chrono::microseconds pause(const Situation& now);

 private:
  std::chrono::microseconds pause_{50};
  Clock::time_point last_work_, last_call_;
  bool spins_ = true;  ///< there was no pause before the round
};

}  // namespace scalemark
