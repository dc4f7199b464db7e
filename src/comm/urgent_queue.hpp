// Internal to comm/: operations in pieces, of which the most urgent goes next. All ranks start the
// same piece next, though pieces are there at different moments: with every piece the ranks agree
// on how many are there on all of them.
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

/// The rounds are the same on all ranks: an agreement on the least number of pieces that any rank
/// has, then the most urgent of these are chosen, to start in that order. Only how early a rank
/// takes part in a round, and starts, is its own affair. A piece is not interrupted; what becomes
/// urgent overtakes all that are not chosen.
class UrgentQueue : public std::enable_shared_from_this<UrgentQueue> {
 public:
  /// Pieces on their way at the same time: enough that the link is never idle, and so few that what
  /// is urgent soon has its turn. The more of them wait, the less what comes next is in a hurry.
  struct InFlight {
    std::size_t least, most;
  };

  /// `owner` keeps `communicator` alive, on which nothing else is reduced.
  UrgentQueue(MpiWorld& world, std::shared_ptr<const void> owner, MPI_Comm communicator,
              InFlight bounds);

  /// Pieces that are there, in the order in which all ranks have them, to be waited for by
  /// MpiWorld::wait(). The least `urgency` goes first, and the first added of these. Any thread.
  void add(const std::vector<std::shared_ptr<Operation>>& pieces, int urgency);

 private:
  using Place = std::pair<int, std::int64_t>;  ///< urgency, number of the piece

  void go_on();
  /// By one agreement. It waits in the queues of the link behind all that is in flight, so that one
  /// a piece would leave the link idle.
  std::size_t most_chosen() const { return (most_in_flight_ + 1) / 2; }
  void ask();
  void take_answer(const Operation& agreement, std::int64_t agreed);
  void fail_all();

  MpiWorld& world_;
  std::shared_ptr<const void> owner_;
  MPI_Comm communicator_;
  InFlight bounds_;
  std::mutex mutex_;  ///< of what follows; taken in turn too, so nobody waits for the turn with it
  std::int64_t arrived_ = 0;                                             ///< pieces so far, here
  std::int64_t agreed_ = 0;                                              ///< of these, on all ranks
  std::deque<std::pair<int, std::shared_ptr<Operation>>> next_arrived_;  ///< beyond agreed_
  std::set<std::pair<Place, std::shared_ptr<Operation>>> waiting_;       ///< agreed, not chosen
  std::deque<std::shared_ptr<Operation>> chosen_;                        ///< not started
  std::size_t in_flight_ = 0;
  std::size_t most_in_flight_;  ///< since the last agreement, on all ranks
  bool asked_ = false;          ///< an agreement is under way
  std::string error_;           ///< of an agreement; nothing starts after it
};

}  // namespace scalemark
