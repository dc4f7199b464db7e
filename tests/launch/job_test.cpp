// What reaches ranks on other hosts.
#include "launch/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/platform.hpp"

namespace scalemark::job_test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

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
}  // namespace scalemark::job_test
