// An mpirun that finds neither ssh nor rsh, and one that finds one of them.
#include <cstdlib>
#include <optional>

#include "launch/launch_builder.hpp"
#include "launch_support.hpp"

namespace scalemark::programs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Environment = std::map<std::string, std::string>;

/// PATH has mpirun alone, and nothing else says how other hosts are reached.
class WithoutSsh : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("mpirun", "#!/bin/sh\n", true);
    for (const char* name : {"PATH", "OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm",
                             "PRTE_MCA_plm_ssh_agent", "SLURM_JOB_ID"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
      unsetenv(name);
    }
    setenv("PATH", folder_.path().c_str(), 1);
    request_.launcher = Launcher::mpirun;
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }

  auto chosen(const Environment& environment = {}, bool elsewhere = false) {
    LaunchRequest request = request_;
    do_without_ssh(request, environment, elsewhere);
    return request.environment;
  }

  TestFolder folder_;
  LaunchRequest request_;
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST_F(WithoutSsh, TheComponentThatWantsItIsLeftOut) {
  EXPECT_THAT(chosen(), ElementsAre(Pair("OMPI_MCA_plm", "^rsh")));
  do_without_ssh(request_, {}, false);
  EXPECT_NO_THROW(require_programs(request_));
}

TEST_F(WithoutSsh, NothingIsSetWhereOneIsThere) {
  for (const char* name : {"ssh", "rsh"}) {
    const std::string path = folder_.write(name, "#!/bin/sh\n", true);
    EXPECT_THAT(chosen(), IsEmpty()) << name;
    EXPECT_NO_THROW(require_programs(request_)) << name;
    std::filesystem::remove(path);
  }
}

TEST_F(WithoutSsh, OtherLaunchersNeedNone) {
  request_.launcher = Launcher::srun;
  EXPECT_THAT(chosen(), IsEmpty());
  request_.launcher = Launcher::mpirun;
  request_.hydra = true;
  EXPECT_THAT(chosen(), IsEmpty());
  request_.hydra = false;
  request_.direct = true;
  EXPECT_THAT(chosen(), IsEmpty());
}

TEST_F(WithoutSsh, WhatTheUserHasSetStands) {
  EXPECT_THAT(chosen({{"OMPI_MCA_plm", "isolated"}}), IsEmpty());
  EXPECT_THAT(chosen({{"OMPI_MCA_plm_rsh_agent", "/opt/enter"}}), IsEmpty());
  EXPECT_THAT(chosen({{"PRTE_MCA_plm_ssh_agent", "/opt/enter"}}), IsEmpty());  // Open MPI 5
  EXPECT_THAT(chosen({{"PE_HOSTFILE", "/spool/hosts"}}), IsEmpty());
  request_.environment = {{"OMPI_MCA_plm", "isolated"}};  // a sweep's
  EXPECT_EQ(chosen(), request_.environment);
}

TEST_F(WithoutSsh, OtherHostsCanOnlyBeReachedByAResourceManager) {
  EXPECT_THAT(chosen({}, /*elsewhere=*/true), IsEmpty());
  try {
    require_programs(request_);
    ADD_FAILURE() << "nothing is refused";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("openssh-client"));
  }
  EXPECT_THAT(chosen({{"SLURM_JOB_ID", "7"}}, /*elsewhere=*/true),
              ElementsAre(Pair("OMPI_MCA_plm", "^rsh")));
}

TEST_F(WithoutSsh, TheLauncherItselfIsNeeded) {
  std::filesystem::remove(folder_ / "mpirun");
  EXPECT_THROW(require_programs(request_), EnvironmentError);
}

}  // namespace
}  // namespace scalemark::programs_test
