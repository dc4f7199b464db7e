// Which ranks share cores, whose binding did not come about, and who is far from its GPU.
#include "platform/binding.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "platform/platform.hpp"
#include "platform/tree.hpp"

namespace scalemark::binding_test {
namespace {

RankPlace place(int rank, const char* host, std::vector<int> cpus,
                RequestedBinding requested = {"core"}) {
  return {.rank = rank,
          .host = host,
          .cpus = std::move(cpus),
          .requested = std::move(requested),
          .cpus_of_host = 4};
}

TEST(Binding, OverlapsAreOfOneHostOnly) {
  const auto verdicts = binding_verdicts(
      {place(0, "a", {0, 1}), place(1, "a", {1, 2}), place(2, "a", {3}), place(3, "b", {0, 1})});
  EXPECT_EQ(verdicts[0].overlaps_with, std::vector<int>{1});
  EXPECT_EQ(verdicts[1].overlaps_with, std::vector<int>{0});
  EXPECT_TRUE(verdicts[2].overlaps_with.empty());
  EXPECT_TRUE(verdicts[3].overlaps_with.empty());
  for (const auto& verdict : verdicts) {
    EXPECT_EQ(verdict.as_asked, true);
    EXPECT_EQ(verdict.near_gpu, std::nullopt);
  }
}

TEST(Binding, AMaskOfTheWholeHostIsNoBinding) {
  const std::vector<int> all{0, 1, 2, 3};
  const auto asked = [&](const char* requested, std::vector<int> cpus, const char* other) {
    return binding_verdicts(
               {place(0, "a", cpus, {requested}), place(1, other, all, {requested})})[0]
        .as_asked;
  };
  EXPECT_EQ(asked("core", all, "a"), false);
  EXPECT_EQ(asked("core", {0, 1}, "a"), true);
  EXPECT_EQ(asked("core", all, "b"), true);  // alone on its host
  EXPECT_EQ(asked("none", all, "a"), true);
  EXPECT_EQ(asked("", all, "a"), std::nullopt);
  EXPECT_EQ(asked("core", {}, "a"), std::nullopt);
}

TEST(Binding, TheNumberOfCoresIsAskedForToo) {
  RankPlace two = place(0, "a", {0, 1, 2, 3}, {"core:2", 2});
  two.cores = 2;  // of two threads each
  EXPECT_EQ(binding_verdicts({two})[0].as_asked, true);
  two.cores = 1;
  EXPECT_EQ(binding_verdicts({two})[0].as_asked, false);
}

TEST(Binding, ASocketOrANumaNodeHasItsCores) {
  const std::vector<int> cpus = achieved_affinity().cpus;
  for (const char* policy : {"socket", "numa"})
    EXPECT_GE(cores_of_policy(policy, cpus).value_or(1), 1) << policy;
  EXPECT_EQ(cores_of_policy("core", cpus), std::nullopt);
  EXPECT_EQ(cores_of_policy("none", cpus), std::nullopt);
  EXPECT_EQ(cores_of_policy("socket", {}), std::nullopt);
  // Two ranks on the one socket of a host may run on all of it: as asked.
  RankPlace rank = place(0, "a", {0, 1, 2, 3}, {"socket", 4});
  rank.cores = 4;
  RankPlace other = rank;
  other.rank = 1;
  EXPECT_EQ(binding_verdicts({rank, other})[0].as_asked, true);
  rank.requested.cores = 2;  // of a host of two sockets
  EXPECT_EQ(binding_verdicts({rank, other})[0].as_asked, false);
}

TEST(Binding, LaunchersSayWhatTheyWereAskedFor) {
  const auto asked = [](std::map<std::string, std::string> variables) {
    const RequestedBinding requested = requested_binding(variables);
    return requested.text + " " + (requested.cores ? std::to_string(*requested.cores) : "?");
  };
  EXPECT_EQ(asked({}), " ?");
  EXPECT_EQ(asked({{"SMK_INTERNAL_BINDING", "core:12"}, {"SLURM_CPU_BIND_TYPE", "mask_cpu:"}}),
            "core:12 12");
  EXPECT_EQ(asked({{"OMPI_MCA_hwloc_base_binding_policy", "core"}}), "core 1");
  EXPECT_EQ(asked({{"OMPI_MCA_hwloc_base_binding_policy", "core"},
                   {"OMPI_MCA_rmaps_base_mapping_policy", "ppr:2:node:PE=4,span"}}),
            "core 4");
  EXPECT_EQ(asked({{"OMPI_MCA_hwloc_base_binding_policy", "socket"}}), "socket ?");
  EXPECT_EQ(asked({{"SLURM_CPU_BIND_TYPE", "mask_cpu:"}}), "mask_cpu: ?");
}

/// A node whose GPUs 0 and 1 are on NUMA node 1, and 2 and 3 on node 0: four cores a node, CPUs
/// n and n + 8 are one core.
class CrossedGpus : public testing::Test {
 protected:
  void SetUp() override {
    setenv("HWLOC_XMLFILE", SCALEMARK_SOURCE_DIR "/tests/platform/crossed_gpus.xml", 1);
    topology_ = load_topology(/*pci=*/true);
    unsetenv("HWLOC_XMLFILE");
    ASSERT_TRUE(topology_);
  }

  const std::vector<std::string> gpus_{"0000:07:00.0", "0000:0f:00.0", "0000:47:00.0",
                                       "0000:4e:00.0"};
  Topology topology_;
};

TEST_F(CrossedGpus, EachRankGetsItsShareOfTheCoresNearItsGpu) {
  const std::vector<int> all = cpus_allowed(topology_.get());
  ASSERT_EQ(all.size(), 16U);
  const std::vector<std::vector<int>> expected{
      {4, 5, 12, 13}, {6, 7, 14, 15}, {0, 1, 8, 9}, {2, 3, 10, 11}};
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const auto cpus = cpus_for_gpu(topology_.get(), gpus_, gpu, all);
    EXPECT_EQ(cpus, expected[gpu]) << "GPU " << gpu;
    EXPECT_EQ(numa_of(topology_.get(), cpus), std::vector<int>{gpu < 2 ? 1 : 0});
  }
  // What a cgroup forbids is not given out, and a core for each GPU must be left.
  EXPECT_EQ(cpus_for_gpu(topology_.get(), gpus_, 3, {0, 2, 4}), std::vector<int>{2});
  EXPECT_TRUE(cpus_for_gpu(topology_.get(), gpus_, 3, {0, 4}).empty());
  EXPECT_TRUE(cpus_for_gpu(topology_.get(), {"0000:99:00.0"}, 0, all).empty());
}

TEST_F(CrossedGpus, AMaskByTheNumbersIsFoundWrong) {
  std::vector<RankPlace> by_number, by_place;
  const std::vector<int> all = cpus_allowed(topology_.get());
  for (int rank = 0; rank < 4; ++rank) {
    const auto gpu = static_cast<std::size_t>(rank);
    RankPlace at =
        place(rank, "a", {2 * rank, 2 * rank + 1, 2 * rank + 8, 2 * rank + 9}, {"core:2", 2});
    at.cores = 2;
    at.cpus_of_host = 16;
    at.near_cpus_of_gpu = cpus_near_pci(topology_.get(), gpus_[gpu]);
    by_number.push_back(at);
    at.cpus = cpus_for_gpu(topology_.get(), gpus_, gpu, all);
    by_place.push_back(at);
  }
  for (const auto& verdict : binding_verdicts(by_number)) {
    EXPECT_EQ(verdict.as_asked, true);  // as the launcher was asked, and wrong all the same
    EXPECT_EQ(verdict.near_gpu, false);
  }
  for (const auto& verdict : binding_verdicts(by_place)) {
    EXPECT_EQ(verdict.near_gpu, true);
    EXPECT_TRUE(verdict.overlaps_with.empty());
  }
}

TEST(Binding, PartsOfSeveralNumaNodesCrossThemAndWholeNodesDoNot) {
  setenv("HWLOC_SYNTHETIC", "NUMANode:3 Core:2 PU:1", 1);
  const Topology topology = load_topology();
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_TRUE(topology);
  EXPECT_EQ(cpus_of_machine(topology.get()).size(), 6U);
  const auto crosses = [&](const std::vector<int>& cpus) {
    RankPlace rank = place(0, "a", cpus);
    const Affinity affinity = affinity_of(topology.get(), cpus);
    rank.numa = affinity.numa;
    rank.partial_numa = affinity.partial_numa;
    return binding_verdicts({rank})[0].crosses_numa;
  };
  EXPECT_EQ(crosses({2}), false);
  EXPECT_EQ(crosses({2, 3}), false);
  EXPECT_EQ(crosses({0, 1, 2, 3}), false);  // two whole nodes
  EXPECT_EQ(crosses({0, 1, 2, 3, 4, 5}), false);
  EXPECT_EQ(crosses({1, 2}), true);
  EXPECT_EQ(crosses({0, 1, 2}), true);  // a whole one and a part
  EXPECT_EQ(partial_numa_of(topology.get(), {0, 1, 2}), std::vector<int>{1});
  EXPECT_EQ(binding_verdicts({place(0, "a", {0, 1})})[0].crosses_numa, std::nullopt);
}

TEST(Binding, AFurtherMemoryOfTheSameCpusIsNoOtherNumaNode) {
  setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode] [NUMANode] Core:2 PU:1", 1);
  const Topology topology = load_topology();
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_TRUE(topology);
  const auto numa = [&](const std::vector<int>& cpus) {
    return affinity_of(topology.get(), cpus).numa.size();
  };
  EXPECT_EQ(numa({0}), 1u) << "DDR and HBM of a socket";
  EXPECT_EQ(numa({0, 1}), 1u);
  EXPECT_EQ(numa({1, 2}), 2u) << "parts of two sockets";
}

TEST(Affinity, OfThreadsIsThatOfAllOfThem) {
  const auto on = [](std::vector<int> cpus) {
    Affinity affinity;
    affinity.cpus = std::move(cpus);
    return affinity;
  };
  test::Tree tree;
  tree.file("7/status", "Name:\tx\nCpus_allowed_list:\t0\n");
  tree.file("8/status", "Name:\tx\nCpus_allowed_list:\t1\n");
  const Affinity both = affinity_of_threads(on({0}), tree.root());
  EXPECT_EQ(both.cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(affinity_of_threads(on({5}), "/nowhere").cpus, std::vector<int>{5});
}

TEST(Affinity, OfThisProcessCanBeSetAndIsReadBack) {
  const Affinity before = achieved_affinity();
  ASSERT_FALSE(before.cpus.empty());
  pin_to({before.cpus.back()});
  EXPECT_EQ(achieved_affinity().cpus, std::vector<int>{before.cpus.back()});
  EXPECT_EQ(achieved_affinity().cores, 1);
  pin_to(before.cpus);
  EXPECT_EQ(achieved_affinity().cpus, before.cpus);
}

}  // namespace
}  // namespace scalemark::binding_test
