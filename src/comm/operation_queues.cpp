// Starts pieces as others complete: in turn, or in order of urgency, in rounds on which all ranks
// agree.
#include "comm/operation_queues.hpp"

#include <algorithm>
#include <utility>

namespace scalemark {
namespace {

/// Pieces of 2 MiB: a message waits in the queues of the link behind what is on its way, and so
/// does the answer to its announcement. A Llama of 125 M parameters in divided parameters on two
/// hosts of 1 Gbit/s: 349 tokens/sec with 4 pieces, 413 with 8, 444 and 454 with 16, 448 with 24,
/// 437 with 32, and 402 with all at once.
constexpr std::size_t kInFlight = 16;

/// The share of the waiting pieces that are in flight at once. ResNet-50 has 100 pieces of 512 KiB
/// in a step, which the forward pass soon needs, and gains nothing from more than 6;
/// Transformer-big has 800 pieces.
constexpr std::size_t kShareInFlight = 16;

}  // namespace

void PieceQueue::add(const std::vector<std::shared_ptr<Operation>>& pieces) {
  const std::lock_guard lock(mutex_);
  for (const auto& piece : pieces) {
    piece->on_complete = [self = shared_from_this()] {
      const std::lock_guard lock(self->mutex_);
      --self->in_flight_;
      self->go_on();
    };
    waiting_.push_back(piece);
  }
  go_on();
}

void PieceQueue::go_on() {
  while (in_flight_ < kInFlight && !waiting_.empty()) {
    ++in_flight_;
    world_.start(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

UrgentQueue::UrgentQueue(MpiWorld& world, std::shared_ptr<const void> owner, MPI_Comm communicator,
                         InFlight bounds)
    : world_(world),
      owner_(std::move(owner)),
      communicator_(communicator),
      bounds_(bounds),
      most_in_flight_(bounds.least) {}

void UrgentQueue::add(const std::vector<std::shared_ptr<Operation>>& pieces, int urgency) {
  const std::lock_guard lock(mutex_);
  for (const auto& piece : pieces) {
    piece->on_complete = [self = shared_from_this()] {
      const std::lock_guard lock(self->mutex_);
      --self->in_flight_;
      self->go_on();
    };
    next_arrived_.emplace_back(urgency, piece);
  }
  arrived_ += static_cast<std::int64_t>(pieces.size());
  go_on();
}

/// Starts the agreement of the next round while the pieces of earlier rounds are in flight.
void UrgentQueue::go_on() {
  if (!error_.empty()) return fail_all();
  while (in_flight_ < most_in_flight_ && !chosen_.empty()) {
    ++in_flight_;
    world_.start(std::move(chosen_.front()));
    chosen_.pop_front();
  }
  if (!asked_ && chosen_.size() < most_chosen() && (!waiting_.empty() || arrived_ > agreed_)) ask();
}

void UrgentQueue::ask() {
  asked_ = true;
  const auto least = std::make_shared<std::int64_t>(arrived_);
  auto agreement = std::make_shared<Operation>();
  agreement->stages = {[self = shared_from_this(), least] {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(self->world_.selector().post(sizeof *least,
                                           [&] {
                                             return MPI_Iallreduce(MPI_IN_PLACE, least.get(), 1,
                                                                   MPI_INT64_T, MPI_MIN,
                                                                   self->communicator_, &request);
                                           }),
              "MPI_Iallreduce");
    return std::vector{request};
  }};
  agreement->on_complete = [self = shared_from_this(), least, &done = *agreement] {
    self->take_answer(done, *least);
  };
  world_.start(std::move(agreement));
}

void UrgentQueue::take_answer(const Operation& agreement, std::int64_t agreed) {
  const std::lock_guard lock(mutex_);
  error_ = agreement.error;
  if (!error_.empty()) return fail_all();
  asked_ = false;
  for (; agreed_ < agreed; ++agreed_) {
    auto& [urgency, piece] = next_arrived_.front();
    waiting_.emplace(Place{urgency, agreed_}, std::move(piece));
    next_arrived_.pop_front();
  }
  most_in_flight_ = std::clamp(waiting_.size() / kShareInFlight, bounds_.least, bounds_.most);
  for (std::size_t i = 0; i < most_chosen() && !waiting_.empty(); ++i)
    chosen_.push_back(std::move(waiting_.extract(waiting_.begin()).value().second));
  go_on();
}

/// Lets all pieces fail, so that threads that wait for them get the error.
void UrgentQueue::fail_all() {
  std::vector<std::shared_ptr<Operation>> lost(chosen_.begin(), chosen_.end());
  chosen_.clear();
  for (const auto& [place, piece] : std::exchange(waiting_, {})) lost.push_back(piece);
  for (auto& [urgency, piece] : std::exchange(next_arrived_, {})) lost.push_back(std::move(piece));
  for (auto& piece : lost) {
    piece->error = error_;
    ++in_flight_;
    world_.start(std::move(piece));
  }
}

}  // namespace scalemark
