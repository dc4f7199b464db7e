// What a launcher announces, and that secrets never pass the allow-list.
#include <gtest/gtest.h>

#include "platform/platform.hpp"

namespace scalemark::environment_test {
namespace {
using Environment = std::map<std::string, std::string>;

TEST(LauncherHint, NoneOutsideALauncher) {
  EXPECT_FALSE(launcher_hint({}));
  EXPECT_FALSE(launcher_hint({{"PATH", "/usr/bin"}, {"OMP_NUM_THREADS", "4"}}));
}

TEST(LauncherHint, OpenMpi) {
  const auto hint = launcher_hint({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}});
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->name, "mpirun");
  EXPECT_EQ(hint->tasks, 4);
}

TEST(LauncherHint, HydraAndOtherMpisByPmi) {
  const auto hint = launcher_hint({{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}});
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->name, "hydra");
  EXPECT_EQ(hint->tasks, 3);
}

TEST(LauncherHint, SlurmStep) {
  const auto hint = launcher_hint({{"SLURM_JOB_ID", "7"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_PROCID", "1"},
                                   {"SLURM_NTASKS", "8"},
                                   {"SLURM_STEP_NUM_TASKS", "2"}});
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->name, "srun");
  EXPECT_EQ(hint->tasks, 2);  // of this step, not of the job
}

TEST(LauncherHint, SlurmStepWithoutTheStepCount) {
  const auto hint =
      launcher_hint({{"SLURM_STEPID", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->tasks, 8);
}

TEST(LauncherHint, BareBatchScriptIsNoLaunch) {
  const Environment batch{{"SLURM_JOB_ID", "7"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_PROCID", "0"},
                          {"SLURM_LOCALID", "0"},
                          {"ENVIRONMENT", "BATCH"}};
  EXPECT_FALSE(launcher_hint(batch));
  for (const char* step : {"batch", "4294967291", "4294967294", "interactive"}) {
    Environment with_step = batch;
    with_step["SLURM_STEP_ID"] = step;
    EXPECT_FALSE(launcher_hint(with_step)) << step;
  }
}

TEST(LauncherHint, ShellOfAnAllocationIsNoLaunch) {
  EXPECT_FALSE(
      launcher_hint({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}}));
}

TEST(SrunWithoutPmi, IsAStepThatOffersNeitherPmixNorPmi) {
  const Environment step{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  EXPECT_TRUE(is_srun_without_pmi(step));
  for (const auto& [name, value] : {std::pair{"PMIX_NAMESPACE", "slurm.pmix.6.0"},
                                    {"PMI_RANK", "1"},
                                    {"OMPI_COMM_WORLD_SIZE", "2"},
                                    {"SLURM_STEP_ID", "4294967291"}}) {
    Environment other = step;
    other[name] = value;
    EXPECT_FALSE(is_srun_without_pmi(other)) << name;
  }
  EXPECT_FALSE(is_srun_without_pmi({}));
}

TEST(LauncherHint, MpirunInsideSlurmWins) {
  const auto hint = launcher_hint({{"SLURM_JOB_ID", "7"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "2"},
                                   {"OMPI_COMM_WORLD_SIZE", "16"}});
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->name, "mpirun");
  EXPECT_EQ(hint->tasks, 16);
}

TEST(LauncherHint, PmiInsideSlurm) {
  Environment step{{"SLURM_STEP_ID", "0"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_STEP_NUM_TASKS", "2"},
                   {"PMI_SIZE", "2"}};
  EXPECT_EQ(launcher_hint(step)->name, "srun");
  step["PMI_SIZE"] = "64";  // Hydra starts one Slurm task a node and the ranks itself
  EXPECT_EQ(launcher_hint(step)->name, "hydra");
  EXPECT_EQ(launcher_hint(step)->tasks, 64);
}

TEST(LauncherHint, GarbageIsNoHint) {
  for (const char* value : {"", "-1", "four", "4x", "99999999999999999999"})
    EXPECT_FALSE(launcher_hint({{"OMPI_COMM_WORLD_SIZE", value}})) << value;
}

TEST(RecordedEnvironment, OnlyTheAllowList) {
  const Environment recorded = recorded_environment({{"NCCL_DEBUG", "INFO"},
                                                     {"GLOO_SOCKET_IFNAME", "eth0"},
                                                     {"OMPI_MCA_btl", "tcp,self"},
                                                     {"UCX_TLS", "rc"},
                                                     {"OMP_NUM_THREADS", "2"},
                                                     {"CUDA_VISIBLE_DEVICES", "0,1"},
                                                     {"SLURM_JOB_ID", "42"},
                                                     {"SLURM_JOB_USER", "somebody"},
                                                     {"HOME", "/home/somebody"},
                                                     {"PATH", "/bin"},
                                                     {"MY_NCCL_DEBUG", "INFO"},
                                                     {"CUDA_VISIBLE_DEVICES_2", "x"}});
  EXPECT_EQ(recorded, (Environment{{"NCCL_DEBUG", "INFO"},
                                   {"GLOO_SOCKET_IFNAME", "eth0"},
                                   {"OMPI_MCA_btl", "tcp,self"},
                                   {"UCX_TLS", "rc"},
                                   {"OMP_NUM_THREADS", "2"},
                                   {"CUDA_VISIBLE_DEVICES", "0,1"},
                                   {"SLURM_JOB_ID", "42"}}));
}

TEST(RecordedEnvironment, NoSecretsWhateverThePrefix) {
  EXPECT_TRUE(recorded_environment({{"NCCL_API_TOKEN", "hunter2"},
                                    {"OMPI_MCA_secret_thing", "hunter2"},
                                    {"UCX_KEY", "hunter2"},
                                    {"FI_PASSWORD", "hunter2"},
                                    {"OMPI_MCA_orte_precondition_transports", "1f-2e"},
                                    {"AWS_SECRET_ACCESS_KEY", "hunter2"},
                                    {"GLOO_PASS", "hunter2"},
                                    {"UCX_PWD", "hunter2"}})
                  .empty());
}

TEST(RecordedEnvironment, OtherVariablesOfLibrariesAreToldApartAndNotShown) {
  const Environment one = recorded_environment({{"UCX_NEW", "hunter2"}, {"NCCL_IB_HCA", "mlx5"}});
  EXPECT_EQ(one.at("NCCL_IB_HCA"), "mlx5");
  EXPECT_TRUE(one.at("UCX_NEW").starts_with("sha256:"));
  EXPECT_EQ(one, recorded_environment({{"UCX_NEW", "hunter2"}, {"NCCL_IB_HCA", "mlx5"}}));
  EXPECT_NE(one.at("UCX_NEW"), recorded_environment({{"UCX_NEW", "hunter3"}}).at("UCX_NEW"));
  for (const char* value : {"http://me:hunter2@proxy:80", "a://x,http://hunter2@proxy"})
    EXPECT_TRUE(recorded_environment({{"UCX_TLS", value}}).at("UCX_TLS").starts_with("sha256:"));
}

TEST(RecordedEnvironment, NothingThatOnlyOneLaunchKnows) {
  const Environment recorded = recorded_environment({{"OMPI_MCA_orte_hnp_uri", "7.0;tcp://a:5000"},
                                                     {"OMPI_MCA_initial_wdir", "/home/me"},
                                                     {"OMPI_MCA_ess", "^singleton"},
                                                     {"OMPI_MCA_ess_base_vpid", "1"},
                                                     {"OMPI_MCA_PREFIXES", "errmgr,ess"},
                                                     {"OMPI_MCA_cpu_type", "hwthread"},
                                                     {"OMPI_MCA_num_procs", "2"},
                                                     {"OMPI_MCA_ess_singleton_isolated", "1"},
                                                     {"OMPI_MCA_orte_default_hostfile", "hosts"}});
  EXPECT_EQ(recorded, (Environment{{"OMPI_MCA_ess_singleton_isolated", "1"},
                                   {"OMPI_MCA_orte_default_hostfile", "hosts"}}));
}

TEST(RecordedEnvironment, LongAndUnprintableValuesAreTamed) {
  const Environment recorded =
      recorded_environment({{"OMP_PLACES", std::string(4000, 'x')}, {"UCX_TLS", "a\xff\n\"b"}});
  EXPECT_EQ(recorded.at("OMP_PLACES"), std::string(1024, 'x'));
  EXPECT_EQ(recorded.at("UCX_TLS"), "a??\"b");
}

TEST(ProcessEnvironment, SeesThisProcess) {
  setenv("SCALEMARK_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(process_environment().at("SCALEMARK_TEST_VARIABLE"), "a=b");
  unsetenv("SCALEMARK_TEST_VARIABLE");
}

}  // namespace
}  // namespace scalemark::environment_test
