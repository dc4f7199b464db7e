// Run operations in pieces, a few at a time: in turn, or the most urgent next. Internal to comm/.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi_world.hpp"

namespace scalemark {

/// Messages that are started together share the link, and the first is complete when the last is.
/// In turn, what was started first comes first: a layer computes while the gradients behind its
/// weights travel. All ranks add the same pieces in the same order, so the first that is not
/// complete is in flight on every rank that has added it, and none waits for another one's order.
class PieceQueue : public std::enable_shared_from_this<PieceQueue> {
 public:
  explicit PieceQueue(MpiWorld& world) : world_(world) {}
  /// Adds pieces, in the order in which all ranks add them. Any thread may call it.
  void add(const std::vector<std::shared_ptr<Operation>>& pieces);

 private:
  void go_on();

  MpiWorld& world_;
  std::mutex mutex_;  ///< guards the members below
  std::deque<std::shared_ptr<Operation>> waiting_;
  std::size_t in_flight_ = 0;
};

/// Starts the most urgent piece next. All ranks start the same one, although pieces become ready at
/// different times: it works in rounds that are the same on all ranks, which agree on the least
/// number of pieces that any rank has ready, and then choose the most urgent of these, to be
/// started in that order. Only the time at which a rank takes part in a round and starts pieces
/// depends on the rank. A piece is not interrupted; what becomes urgent overtakes all pieces that
/// are not chosen yet.
class UrgentQueue : public std::enable_shared_from_this<UrgentQueue> {
 public:
  /// Bounds the pieces in flight at the same time: enough that the link is never idle, and few
  /// enough that an urgent one soon follows. The more pieces wait, the less urgent is what comes
  /// next.
  struct InFlight {
    std::size_t least, most;
  };

  /// `owner` keeps `communicator` alive, on which nothing else is reduced.
  UrgentQueue(MpiWorld& world, std::shared_ptr<const void> owner, MPI_Comm communicator,
              InFlight bounds);

  /// Adds pieces that are ready, in the order in which all ranks have them. They are waited for
  /// with MpiWorld::wait(). The least `urgency` goes first, and among equals the first added. Any
  /// thread may call it.
  void add(const std::vector<std::shared_ptr<Operation>>& pieces, int urgency);

 private:
  using Place = std::pair<int, std::int64_t>;  ///< urgency, number of the piece

  void go_on();
  /// Returns how many pieces one agreement chooses. An agreement waits in the queues of the link
  /// behind all that is in flight, so an agreement for each piece would leave the link idle.
  std::size_t most_chosen() const { return (most_in_flight_ + 1) / 2; }
  void ask();
  void take_answer(const Operation& agreement, std::int64_t agreed);
  void fail_all();

  MpiWorld& world_;
  std::shared_ptr<const void> owner_;
  MPI_Comm communicator_;
  InFlight bounds_;
  std::mutex mutex_;          ///< guards the members below; not held while waiting for the lock
  std::int64_t arrived_ = 0;  ///< pieces so far, here
  std::int64_t agreed_ = 0;   ///< pieces so far on all ranks
  std::deque<std::pair<int, std::shared_ptr<Operation>>> next_arrived_;  ///< beyond agreed_
  std::set<std::pair<Place, std::shared_ptr<Operation>>> waiting_;       ///< agreed, not chosen
  std::deque<std::shared_ptr<Operation>> chosen_;                        ///< not started
  std::size_t in_flight_ = 0;
  std::size_t most_in_flight_;  ///< since the last agreement, on all ranks
  bool asked_ = false;          ///< an agreement is under way
  std::string error_;           ///< error of an agreement; nothing starts after it
};

}  // namespace scalemark
