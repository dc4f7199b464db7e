// Allgather between real ranks: blocks of unlike lengths, none at all, many at once, and its check.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/gradient_reducer.hpp"
#include "comm/mpi_communicator.hpp"
#include "error.hpp"
#include "measure/bus_bandwidth.hpp"
#include "support/mpi_support.hpp"

namespace scalemark::mpi_communicator_mpi_test {
namespace {

using testing::world;
using Counts = std::vector<std::size_t>;

std::size_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

/// `unit` x (rank + 1) elements of every rank.
Counts growing(std::size_t unit) {
  Counts counts;
  for (int rank = 0; rank < world().size(); ++rank)
    counts.push_back(unit * static_cast<std::size_t>(rank + 1));
  return counts;
}

/// Element i of rank r is 1000 r + i % 1000.
template <typename T>
struct Gathered {
  Counts counts;
  std::vector<T> mine, all;
  explicit Gathered(Counts from) : counts(std::move(from)), all(total(counts), T(-1)) {
    for (std::size_t i = 0; i < counts[static_cast<std::size_t>(world().rank())]; ++i)
      mine.push_back(static_cast<T>(1000 * world().rank() + static_cast<int>(i % 1000)));
  }
  std::unique_ptr<Pending> start(Communicator& communicator, DataType type) {
    return asynchronous(communicator)
        .start_allgather({mine.data(), mine.size(), type}, {all.data(), all.size(), type}, counts,
                         nullptr);
  }
  void expect_blocks() const {
    std::size_t at = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank)
      for (std::size_t i = 0; i < counts[rank]; ++i, ++at)
        ASSERT_EQ(all[at], static_cast<T>(1000 * rank + i % 1000)) << "rank " << rank << ", " << i;
  }
};

TEST(Allgather, BringsEveryBlockToEveryRank) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  for (const std::size_t unit : {1u, 7u, 1000u, 100'003u, 400'007u}) {  // in pieces, too
    const Counts equal(static_cast<std::size_t>(world().size()), unit);
    for (const Counts& counts : {equal, growing(unit)}) {
      Gathered<float> rows(counts);
      rows.start(*communicator, DataType::f32)->wait();
      rows.expect_blocks();
      Gathered<std::int64_t> indices(counts);
      indices.start(*communicator, DataType::i64)->wait();
      indices.expect_blocks();
    }
  }
}

TEST(Allgather, BlocksMayBeEmpty) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  Counts only_last(static_cast<std::size_t>(world().size()), 0);
  for (const std::size_t last : {0u, 5u}) {
    only_last.back() = last;
    Gathered<float> rows(only_last);
    rows.start(*communicator, DataType::f32)->wait();
    rows.expect_blocks();
  }
}

TEST(Allgather, RunsBesideSumsAndOtherGathers) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  std::vector<Gathered<float>> gathers;
  std::vector<float> ones(200'000, 1.f);
  for (std::size_t i = 1; i <= 20; ++i) gathers.emplace_back(growing(i * 500));
  std::vector<std::unique_ptr<Pending>> pending;
  for (auto& gather : gathers) pending.push_back(gather.start(*communicator, DataType::f32));
  const auto sum =
      communicator->start_allreduce({ones.data(), ones.size(), DataType::f32}, nullptr);
  world().barrier();  // control passes while data is in flight
  sum->wait();
  for (std::size_t i = pending.size(); i-- > 0;) pending[i]->wait();
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    gathers[i].expect_blocks();
    EXPECT_GT(pending[i]->times()->done, pending[i]->times()->posted);
  }
  EXPECT_EQ(ones, std::vector<float>(200'000, static_cast<float>(world().size())));
}

TEST(Allgather, IsRefusedWhereCountsAndBuffersDiffer) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  Gathered<float> rows(growing(10));
  rows.all.push_back(0);
  try {
    rows.start(*communicator, DataType::f32);
    FAIL() << "accepted";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("allgather on rank"), std::string::npos);
  }
  const auto none = make_communicator(CommunicatorKind::none, world(), -1);
  EXPECT_THROW(rows.start(*none, DataType::f32), CommError);
}

TEST(Allgather, WireBytesAreThoseOfARing) {
  EXPECT_EQ(ring_allgather_bytes(1000, 1), 0);
  EXPECT_EQ(ring_allgather_bytes(1000, 2), 500);
  EXPECT_EQ(ring_allgather_bytes(1000, 4), 750);
  EXPECT_EQ(ring_allgather_bytes(1001, 3), 668);  // rounded up
}

TEST(DataCheck, OfAnAllgatherPassesAndFindsOneWrongElement) {
  const auto communicator = make_communicator(CommunicatorKind::mpi, world(), -1);
  for (const bool corrupt : {false, true}) {
    Gathered<std::int64_t> blocks(growing(101));
    const bool mine = corrupt && world().rank() == world().size() - 1;
    try {
      check_allgather(*communicator, {blocks.mine.data(), blocks.mine.size(), DataType::i64},
                      {blocks.all.data(), blocks.all.size(), DataType::i64}, blocks.counts,
                      world().rank(), mine);
      EXPECT_FALSE(mine);
    } catch (const CommError& error) {
      EXPECT_TRUE(mine) << error.what();
      EXPECT_NE(std::string(error.what()).find("block of rank"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace scalemark::mpi_communicator_mpi_test
