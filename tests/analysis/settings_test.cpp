// Settings that differ between ranks, and what the record says of them.
#include "analysis/settings.hpp"

#include <gtest/gtest.h>

#include "record/write.hpp"

namespace scalemark::settings_test {
namespace {

TEST(Settings, ThatDifferNameValuesAndRanks) {
  const Settings ring{{"NCCL_ALGO", "Ring"}, {"UCX_TLS", "rc"}}, tree{{"NCCL_ALGO", "Tree"}};
  EXPECT_TRUE(differing_settings({ring, ring, ring}).empty());
  EXPECT_TRUE(differing_settings({}).empty());
  const auto differences = differing_settings({ring, tree, ring, Settings{}});
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].name, "NCCL_ALGO");
  ASSERT_EQ(differences[0].values.size(), 3u);
  EXPECT_EQ(differences[0].values[0].value, "Ring");
  EXPECT_EQ(differences[0].values[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(differences[0].values[1].value, "Tree");
  EXPECT_FALSE(differences[0].values[2].value);
  EXPECT_EQ(differences[0].values[2].ranks, std::vector<int>{3});
  EXPECT_EQ(differences[1].name, "UCX_TLS");
}

TEST(Settings, HowDaemonsReachTheirHostsIsNoDifference) {
  EXPECT_TRUE(
      differing_settings({{}, {{"OMPI_MCA_plm", "rsh"}, {"OMPI_MCA_routed", "radix"}}}).empty());
  EXPECT_EQ(differing_settings({{}, {{"OMPI_MCA_plm_rsh_agent", "ssh"}}}).size(), 1U);
}

TEST(Settings, OfCommunicationAlone) {
  EXPECT_EQ(communication_settings({{"NCCL_DEBUG", "INFO"},
                                    {"OMP_NUM_THREADS", "2"},
                                    {"OMPI_MCA_pml", "ucx"},
                                    {"SLURM_JOB_ID", "1"}}),
            (Settings{{"NCCL_DEBUG", "INFO"}, {"OMPI_MCA_pml", "ucx"}}));
}

TEST(Settings, TheRecordKeepsVariablesAndParametersApart) {
  const Settings rank{
      {"UCX_IB_PCI_RELAXED_ORDERING", "on"}, {"pml", "ucx"}, {"coll_hcoll_enable", "0"}};
  const record::CommunicationSettings settings = settings_of({rank, rank});
  EXPECT_EQ(settings.environment, (Settings{{"UCX_IB_PCI_RELAXED_ORDERING", "on"}}));
  EXPECT_EQ(settings.open_mpi.at("pml"), "ucx");
  EXPECT_EQ(settings.hcoll_enabled, false);
  EXPECT_EQ(settings.ucx_relaxed_ordering, "on");
  EXPECT_FALSE(settings.nccl_relaxed_ordering);
  EXPECT_TRUE(settings.differing.empty());
}

TEST(Settings, WithoutHcollOrAVariableThereIsAReason) {
  const Settings ring{{"NCCL_ALGO", "Ring"}}, nothing;
  PreflightResult result;
  result.settings = settings_of({ring, nothing});
  const Json json = record_json(result);
  EXPECT_EQ(json["settings"]["hcoll_enabled"], nullptr);
  EXPECT_EQ(json["unavailable"]["settings.hcoll_enabled"], "this Open MPI has no HCOLL");
  const Json& second = json["settings"]["differing"][0]["values"][1];
  EXPECT_EQ(second, Json({{"value", nullptr}, {"ranks", {1}}}));
  EXPECT_EQ(json["unavailable"]["settings.differing.values.value"], "not set on these ranks");
}

}  // namespace
}  // namespace scalemark::settings_test
