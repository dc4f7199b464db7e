// Control between real ranks: every result has a closed form in rank and size.
#include <gtest/gtest.h>

#include <string>

#include "comm/rank_group.hpp"
#include "support/mpi_support.hpp"

namespace scalemark::rank_group_mpi_test {
namespace {

using testing::world;

TEST(RankGroup, KnowsItsPlace) {
  EXPECT_EQ(world().all_sum({1})[0], world().size());
  const auto ranks = world().all_gather(std::to_string(world().rank()));
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(world().size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(ranks[i], std::to_string(i));
  EXPECT_EQ(world().local_size(), world().size());  // the tests run on one host
  EXPECT_EQ(world().local_rank(), world().rank());
  EXPECT_NE(world().library_version().find(testing::is_open_mpi() ? "Open MPI" : "MPICH"),
            std::string::npos);
  EXPECT_EQ(world().library_version().find('\n'), std::string::npos);
}

TEST(RankGroup, BroadcastsFromEveryRoot) {
  const std::string million(1'000'000, 'x');
  for (int root = 0; root < world().size(); ++root) {
    const auto send = [&](const std::string& value) {
      return world().broadcast(world().rank() == root ? value : "ignored", root);
    };
    EXPECT_EQ(send(""), "");
    EXPECT_EQ(send(std::string("a\0b", 3)), std::string("a\0b", 3));
    EXPECT_EQ(send(million), million);
  }
}

std::string word_of(int rank) {
  if (rank == 0) return "";
  return std::string(rank == 2 ? 1'000'000 : static_cast<std::size_t>(rank),
                     static_cast<char>('a' + rank));
}

TEST(RankGroup, GathersStringsOfAnyLengthInRankOrder) {
  const int root = world().size() - 1;
  const auto at_root = world().gather(word_of(world().rank()), root);
  const auto everywhere = world().all_gather(word_of(world().rank()));
  EXPECT_EQ(at_root.size(), world().rank() == root ? static_cast<std::size_t>(world().size()) : 0u);
  ASSERT_EQ(everywhere.size(), static_cast<std::size_t>(world().size()));
  for (int rank = 0; rank < world().size(); ++rank) {
    EXPECT_EQ(everywhere[static_cast<std::size_t>(rank)], word_of(rank));
    if (world().rank() == root) {
      EXPECT_EQ(at_root[static_cast<std::size_t>(rank)], word_of(rank));
    }
  }
}

TEST(RankGroup, SumsOverRanks) {
  const double n = world().size();
  const auto sums = world().all_sum({static_cast<double>(world().rank()), 0.5, -1e300});
  EXPECT_EQ(sums, (std::vector<double>{n * (n - 1) / 2, 0.5 * n, -1e300 * n}));
  EXPECT_TRUE(world().all_sum({}).empty());
}

TEST(RankGroup, SplitsIntoGroupsAndIdleRanks) {
  // The first half works, the rest idles: what a point of a scaling curve does.
  const int working = (world().size() + 1) / 2;
  auto group = world().split(world().rank() < working ? 0 : -1);
  ASSERT_EQ(group.has_value(), world().rank() < working);
  if (group) {
    EXPECT_EQ(group->size(), working);
    EXPECT_EQ(group->rank(), world().rank());
    EXPECT_EQ(group->all_sum({1.0})[0], working);
    group->barrier();
  }
  world().barrier();
  auto parity = world().split(world().rank() % 2);
  ASSERT_TRUE(parity);
  EXPECT_EQ(parity->rank(), world().rank() / 2);
  EXPECT_EQ(parity->all_sum({static_cast<double>(world().rank() % 2)})[0],
            parity->size() * (world().rank() % 2));
}

TEST(RankGroup, AgreesOnSuccess) { EXPECT_NO_THROW(world().agree(ExitCode::ok, "")); }

TEST(RankGroup, AgreesOnTheMostSevereCodeAndNamesTheRanks) {
  const int last = world().size() - 1;
  const bool first_fails = world().rank() == 0, last_fails = world().rank() == last;
  try {
    world().agree_on([&] {
      if (last_fails) throw EnvironmentError("no GPU here");
      if (first_fails) throw ResultError("disk is full");
    });
    FAIL() << "a failed rank must fail all";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    const std::string text = error.what();
    EXPECT_NE(text.find("no GPU here"), std::string::npos) << text;
    if (world().size() > 1) {
      EXPECT_NE(text.find("rank 0: disk is full"), std::string::npos) << text;
      EXPECT_NE(text.find("rank " + std::to_string(last) + ": no GPU here"), std::string::npos)
          << text;
    }
  }
}

TEST(RankGroup, AWordThatAllSayIsSaidOnce) {
  try {
    world().agree(ExitCode::usage, "unknown model");
    FAIL();
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "unknown model");
  }
}

TEST(AgreedStop, GivesTheSumsOfTheStepBefore) {
  AgreedStop stop(world());
  const double n = world().size();
  EXPECT_TRUE(stop.exchange(std::vector<double>{1.0, static_cast<double>(world().rank())}).empty());
  for (int step = 1; step < 20; ++step) {
    const auto before = stop.exchange(std::vector<double>{step + 1.0, 0.0});
    ASSERT_EQ(before.size(), 2u);
    EXPECT_EQ(before[0], n * step);
    EXPECT_EQ(before[1], step == 1 ? n * (n - 1) / 2 : 0.0);
  }
  EXPECT_EQ(stop.finish(), (std::vector<double>{20 * n, 0.0}));
  EXPECT_TRUE(stop.finish().empty());
}

TEST(AgreedStop, StopsAllRanksAtTheSameStep) {
  // One rank alone is asked to stop; every rank leaves at the step after.
  AgreedStop stop(world());
  int step = 0;
  for (; step < 100; ++step) {
    const bool asked = world().rank() == world().size() - 1 && step >= 7;
    const auto before = stop.exchange(std::vector<double>{asked ? 1.0 : 0.0});
    if (!before.empty() && before[0] > 0) break;
  }
  EXPECT_EQ(step, 8);
}

TEST(RankGroup, PhaseReturnsAfterACollective) {
  world().watchdog().enter("step", 12);
  world().barrier();
  EXPECT_STREQ(world().watchdog().progress().phase, "step");
  EXPECT_EQ(world().watchdog().progress().step, 12);
}

TEST(RankGroup, CountsTheCpuTimeOfItsThread) {
  EXPECT_GT(world().communication_cpu_seconds(), 0.0);
}

}  // namespace
}  // namespace scalemark::rank_group_mpi_test
