// Points, cores per rank, the engine's variables, and the whole front door with a launcher and an
// engine of our own.
#include "launch/rank_job.hpp"

#include "config/load.hpp"
#include "launch/engine_start.hpp"
#include "launch_support.hpp"
#include "platform/platform.hpp"
#include "record/scaling.hpp"
#include "result/records.hpp"

namespace scalemark::rank_job_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

PlannedRanks plan(const std::vector<std::int64_t>& ranks, Resources resources) {
  RunConfig config;
  config.ranks = ranks;
  return plan_ranks(config, resources);
}

TEST(PlanRanks, AutoFillsTheMachine) {
  EXPECT_THAT(plan({}, {.cores_per_host = 6}).ranks, ElementsAre(1, 2, 4, 6));
  EXPECT_EQ(plan({}, {.cores_per_host = 6}).placement.cpus_per_rank, 1);
  EXPECT_THAT(plan({}, {.cores_per_host = 2, .hosts = 2}).ranks, ElementsAre(1, 2, 4));
  EXPECT_THAT(plan({}, {.cores_per_host = 64, .gpus_per_host = 4}).ranks, ElementsAre(1, 2, 4));
  EXPECT_EQ(plan({}, {.cores_per_host = 64, .gpus_per_host = 4}).placement.cpus_per_rank, 16);
}

TEST(PlanRanks, CoresOfARankAreTheSameAtEveryPoint) {
  const PlannedRanks launch = plan({1, 3}, {.cores_per_host = 8});
  EXPECT_EQ(launch.largest, 3);
  EXPECT_EQ(launch.placement.cpus_per_rank, 2);
  EXPECT_FALSE(launch.placement.oversubscribe);
  EXPECT_EQ(plan({4}, {.cores_per_host = 8, .hosts = 2}).placement.cpus_per_rank, 4);
  EXPECT_TRUE(plan({3}, {.cores_per_host = 2}).placement.oversubscribe);
  EXPECT_EQ(plan({3}, {.cores_per_host = 2}).placement.cpus_per_rank, 1);
}

TEST(CountHosts, LinesNamesAndComments) {
  const TestFolder folder;
  EXPECT_THAT(hosts_in(folder.write("hosts", "# two\nn0 slots=4\n\nn1\nn0 slots=1\n")),
              ElementsAre(HostSlots{"n0", 5}, HostSlots{"n1", std::nullopt}));
  EXPECT_THAT(hosts_in(folder.write("windows", "\xef\xbb\xbfn0 slots = 2\r\nn1:3 # a rack\r\n")),
              ElementsAre(HostSlots{"n0", 2}, HostSlots{"n1", 3}));
  EXPECT_THAT(hosts_in(folder.write("lines", "n0\nn0\nn1\n")),
              ElementsAre(HostSlots{"n0", 2}, HostSlots{"n1", std::nullopt}));
  EXPECT_THROW(hosts_in(folder.write("word", "n0 slot=2\n")), ConfigError);
  EXPECT_THROW(hosts_in(folder.write("none", "# nobody\n")), ConfigError);
  EXPECT_THROW(hosts_in(folder / "missing"), ConfigError);
}

TEST(AllocatedHosts, OfPbsLsfAndGridEngine) {
  const TestFolder folder;
  const std::vector<HostSlots> two{{"n0", 2}, {"n1", 1}};
  const std::string lines = folder.write("nodes", "n0\nn0\nn1\n");
  EXPECT_EQ(allocated_hosts({{"PBS_NODEFILE", lines}}), two);
  EXPECT_EQ(allocated_hosts({{"LSB_DJOB_HOSTFILE", lines}}), two);
  EXPECT_EQ(allocated_hosts({{"LSB_MCPU_HOSTS", "n0 2 n1 1"}}), two);
  EXPECT_EQ(allocated_hosts({{"PE_HOSTFILE", folder.write("pe",
                                                          "n0 2 all.q@n0 UNDEFINED\n"
                                                          "n1 1 all.q@n1 UNDEFINED\n")}}),
            two);
  EXPECT_TRUE(allocated_hosts({}).empty());
  EXPECT_THROW(allocated_hosts({{"PBS_NODEFILE", "/gone"}}), ConfigError);
  EXPECT_EQ(find_resources(Device::cpu, {}, {{"PBS_NODEFILE", lines}}).hosts, 2);
}

TEST(FindResources, OfSallocsShellAreThoseOfTheAllocation) {
  const auto cores = [](std::map<std::string, std::string> environment) {
    environment["SLURM_JOB_NUM_NODES"] = "4";
    return find_resources(Device::cpu, {}, environment).cores_per_host;
  };
  EXPECT_EQ(cores({{"SLURM_JOB_CPUS_PER_NODE", "1(x4)"}}), 1);
  EXPECT_EQ(cores({{"SLURM_JOB_CPUS_PER_NODE", "96,64(x2),128"}}), 64);
  EXPECT_EQ(cores({{"SLURM_JOB_CPUS_PER_NODE", "none"}}), cores_per_host());
  EXPECT_EQ(cores({{"SLURM_JOB_CPUS_PER_NODE", "96(x4)"}, {"SLURMD_NODENAME", "n0"}}),
            cores_per_host());
}

TEST(SpreadRanks, IsAsEvenAsTheSlotsAllow) {
  using Spread = std::vector<std::pair<std::string, int>>;
  const std::vector<HostSlots> hosts{{"n0", 4}, {"n1", 2}, {"n2", {}}};
  EXPECT_EQ(spread_ranks(2, hosts, {}), (Spread{{"n0", 1}, {"n1", 1}}));
  EXPECT_EQ(spread_ranks(7, hosts, {}), (Spread{{"n0", 3}, {"n1", 2}, {"n2", 2}}));
  EXPECT_EQ(spread_ranks(12, hosts, {}), (Spread{{"n0", 4}, {"n1", 2}, {"n2", 6}}));
  EXPECT_EQ(spread_ranks(5, hosts, 3), (Spread{{"n0", 3}, {"n1", 2}}));
  EXPECT_THROW(spread_ranks(7, {{"n0", 4}, {"n1", 2}}, {}), ConfigError);
}

TEST(FindResources, WhetherAnotherHostTakesPart) {
  const TestFolder folder;
  const auto elsewhere = [&](const std::string& hosts) {
    return find_resources(Device::cpu, folder.write("hosts", hosts), {}).elsewhere;
  };
  const auto in_slurm = [](const std::string& nodes) {
    return find_resources(Device::cpu, {}, {{"SLURM_JOB_NUM_NODES", nodes}}).elsewhere;
  };
  EXPECT_FALSE(find_resources(Device::cpu, {}, {}).elsewhere);
  EXPECT_FALSE(elsewhere("localhost slots=2\n"));
  EXPECT_FALSE(elsewhere(host_name() + "\n"));
  EXPECT_TRUE(elsewhere("far.example\n"));
  EXPECT_TRUE(elsewhere("localhost\nfar.example\n"));
  EXPECT_FALSE(in_slurm("1"));
  EXPECT_TRUE(in_slurm("2"));
}

TEST(EngineVariables, ThreadsFollowTheMaskUnlessSaidOtherwise) {
  RunConfig config;
  EXPECT_THAT(engine_variables(config, 3, {}), Contains(Pair("OMP_NUM_THREADS", "3")));
  EXPECT_THAT(engine_variables(config, 3, {{"OMP_NUM_THREADS", "1"}}),
              Not(Contains(Pair("OMP_NUM_THREADS", ::testing::_))));
  EXPECT_THAT(engine_variables(config, 3, {{"OMP_NUM_THREADS", "1,4"}}),
              Contains(Pair("MKL_NUM_THREADS", "1")));
  EXPECT_THAT(engine_variables(config, 3, {{"MKL_NUM_THREADS", "2"}}),
              Contains(Pair("OMP_NUM_THREADS", "2")));
  config.num_intra_threads = 2;
  EXPECT_THAT(engine_variables(config, 3, {{"OMP_NUM_THREADS", "1"}}),
              Contains(Pair("OMP_NUM_THREADS", "2")));
  EXPECT_THAT(engine_variables(config, 3, {{"TCMALLOC_RELEASE_RATE", "9"}}),
              Not(Contains(Pair("TCMALLOC_RELEASE_RATE", ::testing::_))));
}

/// The supervisor with a launcher of ours in PATH: what it makes of the job's end.
class Supervised : public ::testing::Test {
 protected:
  /// `script` stands for mpirun.
  int run(const std::string& script, const std::string& extra = "",
          Command command = Command::scale) {
    folder_.write("bin/mpirun", "#!/bin/sh\n" + script + "\n", true);
    return in_child([&] {
      setenv("PATH", ((folder_ / "bin") + ":/usr/bin:/bin").c_str(), 1);
      unsetenv("SLURM_JOB_ID");
      std::vector<std::string> arguments{"--ranks=1", "--launcher=mpirun", "--device=cpu",
                                         "--output", output()};
      if (!extra.empty()) arguments.push_back(extra);
      if (!freopen((folder_ / "stderr").c_str(), "w", stderr)) return 99;
      setvbuf(stderr, nullptr, _IONBF, 0);
      try {
        const LoadedConfig loaded = load_config(command, arguments, {});
        return static_cast<int>(supervise_ranks(loaded, rank_job(loaded, arguments)));
      } catch (const Error& error) {
        return static_cast<int>(error.code());
      }
    });
  }
  std::string output() const { return folder_ / "curve.json"; }
  TestFolder folder_;
};

TEST_F(Supervised, TheAgreedCodeWins) {
  EXPECT_EQ(run("echo 6 > $SMK_INTERNAL_HANDOVER/exit_code; exit 1"), 6);
  EXPECT_EQ(run("echo 0 > $SMK_INTERNAL_HANDOVER/exit_code; exit 0"), 0);
  EXPECT_EQ(run("exit 0"), 4);  // of ranks that have said nothing
}

TEST_F(Supervised, LauncherFailuresAreTheEnvironment) {
  EXPECT_EQ(run("echo no such flag >&2; exit 1"), 7);
  EXPECT_THAT(read_text(folder_ / "stderr"), HasSubstr("status 1"));
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(Supervised, ALauncherThatIsToldToEndBeforeItsRanksHaveBegunLeavesARecord) {
  EXPECT_EQ(run("exit 1"), 4);
  EXPECT_THAT(read_text(folder_ / "stderr"), HasSubstr("before its ranks had begun"));
  EXPECT_EQ(result_at<ScalingCurve>(output())->status, Status::failed);
}

TEST_F(Supervised, AKilledRankLeavesWhatWasMeasured) {
  EXPECT_EQ(
      run(R"(echo '{"finished": [], "record": {"kind": "scaling", "status": "interrupted", "points": [1]},
  "path": ")" +
          output() + R"("}' > $SMK_INTERNAL_HANDOVER/partial.json
exit 137)"),
      4);
  const auto record = nlohmann::json::parse(read_text(output()));
  EXPECT_EQ(record["status"], "failed");
  EXPECT_EQ(record["points"].size(), 1u);
  EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("137"));
}

TEST_F(Supervised, ASingleMeasurementThatIsKilledLeavesARecordOfItsKind) {
  for (const auto& [command, kind] : {std::pair{Command::run, "run"},
                                      {Command::infer, "inference"},
                                      {Command::preflight, "preflight"}}) {
    std::filesystem::remove(output());
    EXPECT_EQ(run("exit 137", "", command), 4);
    const auto record = nlohmann::json::parse(read_text(output()));
    EXPECT_EQ(record["kind"], kind);
    EXPECT_EQ(record["status"], "failed");
  }
}

TEST_F(Supervised, TheFinalMessageOfASingleMeasurementIsItsRecord) {
  EXPECT_EQ(run(R"(echo '{"exit_code": 5, "reason": "hangs"}' > $SMK_INTERNAL_HANDOVER/abort.json
exit 5)",
                "", Command::run),
            5);
  EXPECT_FALSE(std::filesystem::exists(output())) << "rank 0 has written it, or could not";
}

TEST_F(Supervised, AKilledFamilyKeepsItsFinishedCurves) {
  const std::string finished = R"({"kind": "scaling", "status": "ok", "points": [1, 2]})";
  const auto publish = [](const std::string& partial) {
    return "echo '" + partial + "' > $SMK_INTERNAL_HANDOVER/partial.json\nexit 137";
  };
  // The only curve is complete: a rank that was killed after it has cost nothing.
  EXPECT_EQ(run(publish(R"({"finished": [)" + finished + R"(], "record": null, "path": ""})")), 0);
  EXPECT_FALSE(std::filesystem::exists(output())) << "it was written before";

  const std::string second = folder_ / "curve-bf16.json";
  EXPECT_EQ(run(publish(R"({"finished": [)" + finished +
                        R"(], "record": {"kind": "scaling", "points": [1]}, "path": ")" + second +
                        R"("})")),
            4);
  EXPECT_EQ(nlohmann::json::parse(read_text(second))["status"], "failed");
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(Supervised, TheHandOverFolderIsGoneAfterwards) {
  EXPECT_EQ(run("echo $SMK_INTERNAL_HANDOVER > " + (folder_ / "name") + "; exit 5"), 5);
  std::string name = read_text(folder_ / "name");
  name.pop_back();
  EXPECT_FALSE(name.empty());
  EXPECT_FALSE(std::filesystem::exists(name));
}

TEST_F(Supervised, EveryWordReachesTheRanks) {
  EXPECT_EQ(run("echo 0 > $SMK_INTERNAL_HANDOVER/exit_code; for word; do echo \"$word\"; done > " +
                    (folder_ / "words"),
                "--label=$(touch x) 'two' words"),
            0);
  EXPECT_THAT(read_text(folder_ / "words"), HasSubstr("\nscale\n--ranks=1\n"));
  EXPECT_THAT(read_text(folder_ / "words"), HasSubstr("\n--label=$(touch x) 'two' words\n"));
}

}  // namespace
}  // namespace scalemark::rank_job_test
