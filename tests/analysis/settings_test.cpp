// Settings that differ between ranks, and what the record says of them.
#include "analysis/settings.hpp"

#include <gtest/gtest.h>

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
  EXPECT_EQ(differences[0].values[2].value, std::nullopt);
  EXPECT_EQ(differences[0].values[2].ranks, std::vector<int>{3});
  EXPECT_EQ(differences[1].name, "UCX_TLS");
}

TEST(Settings, OfCommunicationAlone) {
  EXPECT_EQ(communication_settings({{"NCCL_DEBUG", "INFO"},
                                    {"OMP_NUM_THREADS", "2"},
                                    {"OMPI_MCA_pml", "ucx"},
                                    {"SLURM_JOB_ID", "1"}}),
            (Settings{{"NCCL_DEBUG", "INFO"}, {"OMPI_MCA_pml", "ucx"}}));
}

TEST(Settings, TheRecordKeepsVariablesAndParametersApart) {
  Json unavailable = Json::object();
  const Settings rank{
      {"UCX_IB_PCI_RELAXED_ORDERING", "on"}, {"pml", "ucx"}, {"coll_hcoll_enable", "0"}};
  const Json json = settings_json({rank, rank}, unavailable);
  EXPECT_EQ(json["environment"], Json({{"UCX_IB_PCI_RELAXED_ORDERING", "on"}}));
  EXPECT_EQ(json["open_mpi"]["pml"], "ucx");
  EXPECT_EQ(json["hcoll_enabled"], false);
  EXPECT_EQ(json["ucx_relaxed_ordering"], "on");
  EXPECT_EQ(json["nccl_relaxed_ordering"], nullptr);
  EXPECT_EQ(json["differing"], Json::array());
  EXPECT_EQ(unavailable.size(), 1u);
  EXPECT_TRUE(unavailable.contains("settings.nccl_relaxed_ordering"));
}

TEST(Settings, WithoutHcollOrAVariableThereIsAReason) {
  Json unavailable = Json::object();
  const Settings ring{{"NCCL_ALGO", "Ring"}}, nothing;
  const Json json = settings_json({ring, nothing}, unavailable);
  EXPECT_EQ(json["hcoll_enabled"], nullptr);
  EXPECT_TRUE(unavailable.contains("settings.hcoll_enabled"));
  EXPECT_EQ(json["differing"][0]["values"][1]["value"], nullptr);
  EXPECT_EQ(json["differing"][0]["values"][1]["ranks"], Json::array({1}));
  EXPECT_TRUE(unavailable.contains("settings.differing.values.value"));
}

}  // namespace
}  // namespace scalemark::settings_test
