// How many pieces are in flight, and which comes next.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "comm/operation_queues.hpp"
#include "comm/rank_group_impl.hpp"
#include "support/mpi_support.hpp"

namespace scalemark::operation_queues_mpi_test {
namespace {

using testing::world;

/// Messages from this rank to itself, of which each completes when it is sent.
class PieceQueueTest : public ::testing::Test {
 protected:
  PieceQueueTest() : group_(world().impl()), queue_(std::make_shared<PieceQueue>(*group_->world)) {}

  std::shared_ptr<Operation> receive(int tag) {
    auto operation = std::make_shared<Operation>();
    operation->stages = {[this, tag] {
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Irecv(nullptr, 0, MPI_BYTE, group_->rank, tag, group_->communicator, &request),
                "MPI_Irecv");
      started_.push_back(tag);
      return std::vector{request};
    }};
    return operation;
  }

  void complete(int tag, Operation& operation) {
    group_->world->call("test", [&] {
      check_mpi(MPI_Send(nullptr, 0, MPI_BYTE, group_->rank, tag, group_->communicator),
                "MPI_Send");
    });
    group_->world->wait(operation, "test");
  }

  /// Tags in the order of their starts. Commands given before this one have run.
  std::vector<int> started() {
    return group_->world->call("test", [&] { return started_; });
  }

  std::shared_ptr<RankGroup::Impl> group_;
  std::shared_ptr<PieceQueue> queue_;
  std::vector<int> started_;  ///< guarded by the MPI lock
};

TEST_F(PieceQueueTest, StartsSixteenAndOthersInTurnAsTheseComplete) {
  std::vector<std::shared_ptr<Operation>> pieces;
  for (int tag = 0; tag < 20; ++tag) pieces.push_back(receive(tag));
  queue_->add({pieces.begin(), pieces.begin() + 18});
  std::vector<int> tags(16);
  std::iota(tags.begin(), tags.end(), 0);
  EXPECT_EQ(started(), tags);
  for (const int tag : {11, 0}) {  // whichever completes
    complete(tag, *pieces[static_cast<std::size_t>(tag)]);
    tags.push_back(static_cast<int>(tags.size()));
    EXPECT_EQ(started(), tags);
  }
  queue_->add({pieces.begin() + 18, pieces.end()});
  EXPECT_EQ(started(), tags) << "no room";
  for (int tag = 1; tag < 20; ++tag)
    if (tag != 11) complete(tag, *pieces[static_cast<std::size_t>(tag)]);
  EXPECT_EQ(started().size(), 20u);
}

TEST_F(PieceQueueTest, GoesOnAfterAPieceThatFails) {
  std::vector<std::shared_ptr<Operation>> pieces;
  for (int tag = 0; tag < 17; ++tag) pieces.push_back(receive(tag));
  pieces[0]->stages = {[]() -> std::vector<MPI_Request> { throw CommError("broken"); }};
  queue_->add(pieces);
  EXPECT_THROW(group_->world->wait(*pieces[0], "test"), CommError);
  EXPECT_EQ(started().size(), 16u);
  for (int tag = 1; tag < 17; ++tag) complete(tag, *pieces[static_cast<std::size_t>(tag)]);
}

}  // namespace
}  // namespace scalemark::operation_queues_mpi_test
