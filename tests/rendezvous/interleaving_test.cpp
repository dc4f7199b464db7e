// Interleaving with real processes: never two jobs at once, in the order that takes a drift out,
// and no end before the other's.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "error.hpp"
#include "rendezvous/start_barrier.hpp"
#include "support/test_folder.hpp"

namespace scalemark::interleaving_test {
namespace {

constexpr int kRanks = 2;

/// What all processes see.
struct Shared {
  std::atomic<int> computing[2];        ///< ranks of each job that have their slice
  std::atomic<int> both, ended, early;  ///< times that both jobs had one; ranks that have ended;
                                        ///< ranks that were let go before all had
  std::atomic<int> places;
  std::atomic<char> order[64];  ///< jobs of rank 0's slices
};

class Interleaving : public testing::Test {
 protected:
  Interleaving() {
    shared_ = new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) Shared{};
    giver_ = std::make_unique<Interleaver>(folder_.path(), std::array<int, 2>{kRanks, kRanks});
  }
  ~Interleaving() override {
    giver_.reset();
    munmap(shared_, sizeof(Shared));
  }

  StartBarrier line_of(int job) const {
    return StartBarrier({{"SMK_INTERNAL_TURNS", giver_->address(static_cast<std::size_t>(job))}});
  }

  void take_slices(int job, int rank, int slices) const {
    StartBarrier line = line_of(job);
    const auto never = [] { return false; };
    for (int i = 0; i < slices; ++i) {
      line.wait(never);
      ++shared_->computing[job];
      if (rank == 0) shared_->order[shared_->places++] = static_cast<char>('a' + job);
      for (int k = 0; k < 5; ++k) {
        usleep(500);
        shared_->both += shared_->computing[1 - job] > 0;
      }
      --shared_->computing[job];
    }
    ++shared_->ended;
    line.end(never);
    shared_->early += shared_->ended < 2 * kRanks;
  }

  void start(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return children_.push_back(child);
    body();
    _exit(0);
  }
  void start_ranks(int job, int slices) {
    for (int rank = 0; rank < kRanks; ++rank) start([=, this] { take_slices(job, rank, slices); });
  }

  /// Serves the slices until all processes have ended; false where that takes ten seconds.
  bool serve() {
    for (int i = 0; i < 100'000 && !children_.empty(); ++i) {
      giver_->update();
      std::erase_if(children_, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; });
      usleep(100);
    }
    for (const pid_t child : children_) kill(child, SIGKILL);
    return children_.empty();
  }

  std::string order() const {
    std::string text;
    for (int i = 0; i < shared_->places; ++i) text += shared_->order[i];
    return text;
  }

  TestFolder folder_;
  Shared* shared_;
  std::unique_ptr<Interleaver> giver_;
  std::vector<pid_t> children_;
};

TEST_F(Interleaving, GoToOneJobAtATime) {
  start_ranks(1, 6);
  start_ranks(0, 6);
  EXPECT_TRUE(serve());
  EXPECT_EQ(order(), "abbaabbaabba");
  EXPECT_EQ(shared_->both, 0);
  EXPECT_EQ(shared_->early, 0);
  EXPECT_EQ(giver_->slices(0), 6u);
  EXPECT_EQ(giver_->slices(1), 6u);
}

TEST_F(Interleaving, OfAJobThatHasEndedGoToTheOther) {
  start_ranks(0, 2);
  start_ranks(1, 7);
  EXPECT_TRUE(serve());
  EXPECT_EQ(order(), "abbabbbbb");
  EXPECT_EQ(shared_->both, 0);
  EXPECT_EQ(shared_->early, 0);
}

TEST_F(Interleaving, OfAJobThatHasDiedGoToTheOther) {
  for (int rank = 0; rank < kRanks; ++rank)
    start([this] {
      StartBarrier line = line_of(0);
      line.wait([] { return false; });
      _exit(1);
    });
  start_ranks(1, 3);
  EXPECT_TRUE(serve());
  EXPECT_EQ(order(), "bbb");
}

TEST_F(Interleaving, NobodyMeasuresBeforeAllAreThere) {
  start_ranks(0, 1);
  start([this] { take_slices(1, 0, 1); });
  for (int i = 0; i < 300; ++i) {
    giver_->update();
    usleep(1000);
  }
  EXPECT_EQ(order(), "");
  start([this] { take_slices(1, 1, 1); });
  EXPECT_TRUE(serve());
  EXPECT_EQ(order(), "ab");
}

TEST_F(Interleaving, AWaitMayBeLeft) {
  start([this] {
    int asked = 0;
    StartBarrier line = line_of(0);
    line.wait([&] { return ++asked > 2; });
    line.end([&] { return ++asked > 5; });
  });
  EXPECT_TRUE(serve());
}

TEST(InterleaverSockets, AFolderThatIsNotThere) {
  EXPECT_THROW(Interleaver("/nowhere", {1, 1}), EnvironmentError);
}

}  // namespace
}  // namespace scalemark::interleaving_test
