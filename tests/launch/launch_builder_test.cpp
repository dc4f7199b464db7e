// One description of a launch as what each launcher is given, and what reaches ranks on other
// hosts.
#include "launch/launch_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "platform/platform.hpp"

namespace scalemark::launch_builder_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

/// Two ranks of four cores, by mpirun.
LaunchDescription two_ranks() {
  LaunchDescription described;
  described.program = "/opt/scalemark";
  described.command = Command::infer;
  described.arguments = {"--model=trivial"};
  described.output = "/x/record.json";
  described.ranks = 2;
  described.cpus_per_rank = 4;
  described.launcher = Launcher::mpirun;
  return described;
}

/// So that nothing is looked for in PATH.
const std::map<std::string, std::string> kOwnAgent{{"OMPI_MCA_plm_rsh_agent", "enter"}};

LaunchRequest built(const LaunchDescription& described) {
  return build_launch(described, kOwnAgent);
}

TEST(BuildLaunch, TheProgramsWordsAreTheSameWhateverStartsThem) {
  LaunchDescription described = two_ranks();
  const auto words =
      ElementsAre("/opt/scalemark", "infer", "--model=trivial", "--output=/x/record.json");
  EXPECT_THAT(built(described).program, words);
  described.launcher = Launcher::srun;
  EXPECT_THAT(built(described).program, words);
  described.direct = true;
  EXPECT_THAT(built(described).program, words);
  EXPECT_THAT(launch_command(built(described), false), words);
}

TEST(BuildLaunch, EachLauncherPlacesTheRanksInItsOwnWords) {
  LaunchDescription described = two_ranks();
  described.ranks_per_node = 1;
  EXPECT_THAT(launch_command(built(described), false), Contains("ppr:1:node:PE=4"));
  described.launcher = Launcher::srun;
  const auto words = launch_command(built(described), false);
  EXPECT_THAT(words, Contains("--ntasks-per-node=1"));
  EXPECT_THAT(words, Contains("--cpus-per-task=4"));
}

TEST(BuildLaunch, ACommandThatWasNotGivenItsRanksPerNodeIsTold) {
  LaunchDescription described = two_ranks();
  described.tells_ranks_per_node = true;
  EXPECT_THAT(built(described).program, Not(Contains("--ranks_per_node=1")));
  described.ranks_per_node = 1;
  EXPECT_THAT(built(described).program, Contains("--ranks_per_node=1"));
}

TEST(BuildLaunch, ThreadsStayThoseOfTheCoresThatARankIsGiven) {
  LaunchDescription described = two_ranks();
  EXPECT_THAT(built(described).environment, IsEmpty()) << "bound: its mask says how many";
  described.binding = Binding::none;
  EXPECT_THAT(built(described).environment,
              ElementsAre(Pair("OMP_NUM_THREADS", "4"), Pair("MKL_NUM_THREADS", "4")));
  described.environment = {{"OMP_NUM_THREADS", "3"}};
  EXPECT_THAT(built(described).environment,
              ElementsAre(Pair("OMP_NUM_THREADS", "3"), Pair("MKL_NUM_THREADS", "4")));
  described.environment.clear();
  described.fixed_threads = true;
  EXPECT_THAT(built(described).environment, IsEmpty());
}

TEST(BuildLaunch, AHostWithoutANameIsThisOne) {
  LaunchDescription described = two_ranks();
  described.hosts = {"", "n1"};
  EXPECT_THAT(built(described).hosts, ElementsAre("localhost", "n1"));
  described.launcher = Launcher::srun;
  EXPECT_THAT(built(described).hosts, ElementsAre(host_name(), "n1"));
}

TEST(BuildLaunch, WhetherRanksAreKnownToRunHere) {
  LaunchDescription described = two_ranks();
  EXPECT_TRUE(built(described).here);
  described.launcher = Launcher::srun;
  EXPECT_FALSE(built(described).here) << "Slurm chooses the node";
  described.binds_itself = true;
  EXPECT_TRUE(built(described).here);
  described.elsewhere = true;
  EXPECT_FALSE(built(described).here);
}

TEST(TellRanks, VariablesAreCarriedToOtherHostsAlone) {
  setenv("SCALEMARK_SEED", "7", 1);
  LaunchRequest here = built(two_ranks());
  tell_ranks(here);
  EXPECT_THAT(here.forward, IsEmpty());
  EXPECT_STREQ(std::getenv("SMK_INTERNAL_BINDING"), "core:4");
  LaunchDescription described = two_ranks();
  described.elsewhere = true;
  LaunchRequest far = built(described);
  tell_ranks(far);
  EXPECT_THAT(far.forward, Contains("SCALEMARK_SEED"));
  EXPECT_THAT(far.forward, Contains("SMK_INTERNAL_BINDING"));
  unsetenv("SCALEMARK_SEED");
  unsetenv("SMK_INTERNAL_BINDING");
}

/// What users tune libraries with decides how ranks run, so it must be the same on every host.
TEST(VariablesForHosts, WhatARecordShowsOfLibrariesReachesEveryHost) {
  std::map<std::string, std::string> environment;
  for (const char* name : {"NCCL_DEBUG", "GLOO_SOCKET_IFNAME", "UCX_TLS", "HCOLL_MAIN_IB",
                           "SHARP_COLL_LOG_LEVEL", "FI_PROVIDER", "PSM2_DEVICES", "OMP_NUM_THREADS",
                           "KMP_AFFINITY", "GOMP_SPINCOUNT", "MKL_NUM_THREADS"})
    environment[name] = "1";
  ASSERT_EQ(recorded_environment(environment), environment);
  const auto names = variables_for_hosts(environment);
  for (const auto& [name, value] : environment) EXPECT_THAT(names, Contains(name));
}

TEST(VariablesForHosts, OurOwnGoToo) {
  for (const char* name : {"SCALEMARK_SEED", "SMK_INTERNAL_BINDING", "TCMALLOC_RELEASE_RATE"})
    EXPECT_THAT(variables_for_hosts({{name, "1"}}), Contains(name));
}

TEST(VariablesForHosts, OthersStayAndMpirunCarriesItsOwn) {
  EXPECT_THAT(variables_for_hosts({{"HOME", "/root"},
                                   {"MY_OMP_SETTING", "1"},
                                   {"CUDA_VISIBLE_DEVICES", "0"},
                                   {"OMPI_MCA_btl", "tcp,self"},
                                   {"OMPI_MCA_orte_precondition_transports", "key"}}),
              IsEmpty());
}

}  // namespace
}  // namespace scalemark::launch_builder_test
