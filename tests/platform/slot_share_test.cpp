// What each rank of a job takes of its slot, on this machine's own cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "platform/platform.hpp"
#include "platform/slots.hpp"

namespace scalemark::slot_share_test {
namespace {

using ::testing::ElementsAre;

TEST(EqualShares, OfWholeCoresOrOfTheirThreads) {
  const std::vector<std::vector<int>> cores{{0, 4}, {1, 5}, {2, 6}};
  EXPECT_THAT(equal_shares(cores, 1), ElementsAre(std::vector{0, 1, 2, 4, 5, 6}));
  EXPECT_THAT(equal_shares(cores, 2), ElementsAre(std::vector{0, 4}, std::vector{1, 5}));
  EXPECT_THAT(equal_shares(cores, 4),
              ElementsAre(std::vector{0}, std::vector{4}, std::vector{1}, std::vector{5}));
  EXPECT_TRUE(equal_shares(cores, 7).empty());
}

TEST(SlotWords, AreReadBack) {
  SlotPlace cpus, gpu;
  cpus.cpus = {0, 1, 4};
  gpu.cpus = {2};
  gpu.uuid = "GPU-1";
  gpu.host = "n1";
  EXPECT_EQ(slot_words({cpus, gpu}, 3), "3 0-1,4+n1:GPU-1@2");
  const PlaceWords words = place_words("n1:GPU-1@2");
  EXPECT_EQ(words.host, "n1");
  EXPECT_EQ(words.uuid, "GPU-1");
  EXPECT_EQ(words.cpus, "2");
  EXPECT_FALSE(place_words("MIG-1").cpus);
  EXPECT_EQ(place_words(" 0-3 ").cpus, "0-3");
}

TEST(SlotShare, OfThisMachine) {
  const std::vector<std::vector<int>> cores = allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  const std::string all = format_cpu_list({cores[0].front(), cores[1].front()});
  EXPECT_EQ(share_of_slot("2 " + all, "n0", 0).cpus, std::vector{cores[0].front()});
  EXPECT_EQ(share_of_slot("2 " + all, "n0", 1).cpus, std::vector{cores[1].front()});
  EXPECT_EQ(share_of_slot("3 " + all, "n0", 2).cpus.size(), 2u) << "more ranks than CPUs";
  EXPECT_THROW(share_of_slot("2 " + all, "n0", 2), EnvironmentError);
  EXPECT_THROW(share_of_slot("2 x", "n0", 0), EnvironmentError);
  EXPECT_THROW(share_of_slot("", "n0", 0), EnvironmentError);
}

TEST(SlotShare, OfTheOwnHostAndItsDevices) {
  const std::string cpu = std::to_string(allowed_cores().front().front());
  const std::string both = "1 n0:GPU-a@" + cpu + "+n0:GPU-b@" + cpu + "+n1:GPU-c@" + cpu;
  EXPECT_EQ(share_of_slot(both, "n0.site.org", 1).devices, "GPU-a,GPU-b");
  EXPECT_EQ(share_of_slot(both, "n1", 0).devices, "GPU-c");
  EXPECT_TRUE(share_of_slot(both, "n1", 0).on_named_host);
  EXPECT_THROW(share_of_slot(both, "n1", 1), EnvironmentError);
  EXPECT_THROW(share_of_slot(both, "n2", 0), EnvironmentError);
  EXPECT_EQ(share_of_slot("1 MIG-a@" + cpu + "+MIG-b@" + cpu, "x", 1).devices, "MIG-b");
  EXPECT_EQ(share_of_slot("1 10.0.0.7:" + cpu, "x", 0).devices, "") << "one host needs no match";
}

TEST(Hosts, AreTheSameWithAndWithoutTheirDomain) {
  EXPECT_TRUE(is_same_host("n0", "n0.site.org"));
  EXPECT_TRUE(is_same_host("n0.site.org", "n0.site.org"));
  EXPECT_FALSE(is_same_host("n0.site.org", "n0.other.org"));
  EXPECT_FALSE(is_same_host("n0", "n1"));
  EXPECT_FALSE(is_same_host("", "n1"));
}

}  // namespace
}  // namespace scalemark::slot_share_test
