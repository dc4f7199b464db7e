// The command line of `scalemark instances`: its own flags, the job's, and what becomes of both.
#include "launch/instances.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/requests.hpp"
#include "commands/subcommands.hpp"
#include "config/value_syntax.hpp"
#include "launch/engine_start.hpp"

namespace scalemark::instances_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

InstancesRequest read(std::vector<std::string> words) {
  words.insert(words.begin(), {"--device", "cpu"});
  return read_instances_request(words);
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    read(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return {};
}

std::vector<std::string> program(const InstancesRequest& request, std::size_t slot,
                                 const std::string& record = "a") {
  return instance_request(request, slot, record).program;
}

/// The first CPU that this process may use.
std::string cpu() { return std::to_string(achieved_affinity().cpus.front()); }

TEST(InstancesRequest, OwnFlagsAndThoseOfTheJob) {
  const auto request = read({"--model", "smallnet", "--job=run", "--slots", cpu(), "--repeats", "2",
                             "--seed=9", "--launch-timeout", "60", "--output", "i.json"});
  EXPECT_EQ(request.plan.config.command, Command::run);
  EXPECT_EQ(request.plan.config.config.seed, 9);
  EXPECT_EQ(request.plan.repeats, 2);
  EXPECT_EQ(request.launch_timeout, 60);
  EXPECT_THAT(request.plan.instances, ElementsAre(1));
  EXPECT_EQ(request.plan.slots.at(0).title(), "CPU " + cpu());
  std::map<std::string, std::string> origins;
  for (const auto& [key, setting] : request.plan.own_config) origins[key] = setting.origin;
  EXPECT_EQ(origins["repeats"], "command_line");
  EXPECT_EQ(origins["instances"], "default");
  EXPECT_THAT(request.arguments, ElementsAre("--device", "cpu", "--model", "smallnet", "--seed=9",
                                             "--output", "i.json"));
}

TEST(InstancesRequest, AnInstanceIsAnOrdinaryCommand) {
  const auto request = read(
      {"--model", "smallnet", "--job", "infer", "--slots", cpu(), "--output", "i.json", "--json"});
  const auto words = program(request, 0, "/x/a.json");
  EXPECT_EQ(words.at(1), "infer");
  EXPECT_EQ(words.back(), "--output=/x/a.json");
  EXPECT_EQ(words.at(words.size() - 2), "--json=false");
  EXPECT_THAT(words, Not(Contains(HasSubstr("slots"))));
  EXPECT_THAT(words, Not(Contains(HasSubstr("dry_run")))) << "infer has none";
}

TEST(InstancesRequest, AFaultIsOfASlot) {
  const auto request = read({"--slots", cpu() + ";n1:0", "--inject", "kill:rank=1:step=3"});
  EXPECT_EQ(request.plan.config.config.inject->rank, 1);
  EXPECT_THAT(program(request, 0), Not(Contains(HasSubstr("inject"))));
  EXPECT_THAT(program(request, 1), Contains("--inject=kill:rank=0:step=3"));
  const auto all = read({"--slots", cpu() + ";n1:0", "--inject", "kill:step=3"});
  EXPECT_THAT(program(all, 1), Contains("--inject=kill:step=3"));
}

std::vector<std::string> launched(const InstancesRequest& request, std::size_t slot) {
  const auto words = launch_command(instance_request(request, slot, "a.json"), false);
  return {words.begin(), std::ranges::find(words, own_path().string())};
}

TEST(InstancesRequest, OneRankOfThisHostNeedsNoLauncher) {
  EXPECT_THAT(launched(read({"--slots", cpu()}), 0), ElementsAre());
}

TEST(InstancesRequest, SeveralRanksAreLaunchedOnTheirHostsAndBindThemselves) {
  const auto several =
      read({"--launcher", "mpirun", "--ranks", "4", "--slots", cpu() + ";n1:0-3+n2:0-3"});
  EXPECT_EQ(several.plan.ranks, 4);
  EXPECT_EQ(launched(several, 0),
            (std::vector<std::string>{"mpirun", "-n", "4", "--host", "localhost:4", "--map-by",
                                      "ppr:4:node:OVERSUBSCRIBE", "--bind-to", "none", "-x",
                                      "SMK_INTERNAL_SLOT"}));
  EXPECT_THAT(launched(several, 1), Contains("n1:2,n2:2"));
  EXPECT_THAT(launched(several, 1), Contains("ppr:2:node:OVERSUBSCRIBE"));
  EXPECT_EQ(instance_request(several, 1, "a").environment.at(0).second, "2 n1:0-3+n2:0-3");
  const auto stepped = read({"--launcher", "srun", "--ranks", "2", "--slots", "n1:0+n2:0"});
  EXPECT_EQ(
      launched(stepped, 0),
      (std::vector<std::string>{"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", "2", "-N", "2",
                                "--ntasks-per-node=1", "--distribution=plane=1", "--nodelist=n1,n2",
                                "--overlap", "--overcommit", "--cpu-bind=none"}));
}

TEST(InstancesRequest, CheckpointsOfInstancesLieApart) {
  const auto request =
      read({"--slots", cpu() + ";n1:0", "--checkpoint_every", "5", "--checkpoint_dir", "/c"});
  EXPECT_THAT(program(request, 0), Contains("--checkpoint_dir=/c/slot0"));
  EXPECT_THAT(program(request, 1), Contains("--checkpoint_dir=/c/slot1"));
}

TEST(InstancesRequest, WrongWordsAreRefused) {
  EXPECT_THAT(refusal({"--job", "rum"}), HasSubstr("did you mean run?"));
  EXPECT_THAT(refusal({"--slot", "0"}), HasSubstr("did you mean --slots?"));
  EXPECT_THAT(refusal({"--slots"}), HasSubstr("value is missing"));
  EXPECT_THAT(refusal({"--slots="}), HasSubstr("empty"));
  EXPECT_THAT(refusal({"--instances", "2,1"}), HasSubstr("--instances"));
  EXPECT_THAT(refusal({"--instances", ""}), HasSubstr("--instances"));
  EXPECT_THAT(refusal({"--instances", "0"}), HasSubstr("--instances"));
  EXPECT_THAT(refusal({"--instances", "2", "--slots", cpu()}), HasSubstr("only 1 slot; "));
  EXPECT_THAT(refusal({"--repeats", "0"}), HasSubstr("--repeats"));
  EXPECT_THAT(refusal({"--launch_timeout", "soon"}), HasSubstr("--launch_timeout"));
  EXPECT_THAT(refusal({"--inject", "explode"}), HasSubstr("explode"));
  EXPECT_THAT(refusal({"--batch_size", "max"}), HasSubstr("give a number"));
  EXPECT_THAT(refusal({"--job", "infer", "--optimizer", "adam"}), HasSubstr("scalemark infer"));
  EXPECT_THAT(refusal({"--modle", "trivial"}), HasSubstr("--model"));
  EXPECT_THAT(refusal({"--ranks", "1,2"}), HasSubstr("--ranks"));
  EXPECT_THAT(refusal({"--ranks_per_node", "1"}), HasSubstr("--ranks_per_node"));
  EXPECT_THAT(refusal({"--ranks", "2", "--scaling", "strong", "--global_batch_size", "3"}),
              HasSubstr("global_batch_size"));
}

TEST(InstancesRequest, HelpHasBothKindsOfFlags) {
  const std::string help = full_help(commands::instances_help({}), 80);
  const std::string of_infer =
      full_help(commands::instances_help({{"--job", "infer", "--help"}, nullptr}), 80);
  for (const char* flag : {"--slots", "--instances", "--optimizer", "--model", "--config"})
    EXPECT_THAT(help, HasSubstr(flag));
  EXPECT_THAT(of_infer, HasSubstr("--mode "));
  EXPECT_THAT(of_infer, Not(HasSubstr("--optimizer")));
}

}  // namespace
}  // namespace scalemark::instances_test
