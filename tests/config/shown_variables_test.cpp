// What may be shown of a variable, and what never.
#include "config/shown_variables.hpp"

#include <gtest/gtest.h>

namespace scalemark::shown_variables_test {
namespace {

TEST(ShownVariables, DocumentedSettingsStandAsTheyAre) {
  for (const auto& [name, value] :
       {std::pair{"NCCL_ALGO", "Ring"},
        {"NCCL_SOCKET_IFNAME", "^lo,docker0"},
        {"OMPI_MCA_btl_tcp_if_include", "10.0.0.0/24"},
        {"UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1"},
        {"KMP_AFFINITY", "granularity=fine,compact,1,0"},
        {"OMP_PLACES", "{0:4}:2:8"},
        {"CUDA_VISIBLE_DEVICES", "GPU-8f2a6c1e-0b51-8a0f-2f8c-55dd5e7c1e2b"},
        {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"},
        {"SLURM_TASKS_PER_NODE", "2(x4),1"}})
    EXPECT_EQ(shown_variable(name, value), value);
}

TEST(ShownVariables, OthersStandAsAHashThatTellsTheirValuesApart) {
  const std::string shown = shown_variable("AWS_SECRET_ACCESS_KEY", "hunter2");
  EXPECT_EQ(shown.size(), std::string("sha256:").size() + 16);
  EXPECT_EQ(shown, shown_variable("AWS_SECRET_ACCESS_KEY", "hunter2"));
  EXPECT_NE(shown, shown_variable("AWS_SECRET_ACCESS_KEY", "hunter3"));
  EXPECT_NE(shown, shown_variable("NCCL_NEW_SETTING", "hunter2"));
}

TEST(ShownVariables, ACredentialIsNeverShown) {
  for (const char* value :
       {"http://me:hunter2@proxy:80", "https://hunter2@host/x", "a,b://x,c://y:z@h",
        "password=hunter2", "user=a Passwd: b", "Bearer abcdef0123456789", "--token=abc",
        "AKIAIOSFODNN7EXAMPLE", "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "-----BEGIN OPENSSH PRIVATE KEY-----",
        "api_key: x"}) {
    EXPECT_TRUE(looks_like_a_credential(value)) << value;
    EXPECT_TRUE(shown_variable("NCCL_DEBUG", value).starts_with("sha256:")) << value;
  }
  EXPECT_TRUE(looks_like_a_credential(std::string(1'000'000, 'x')));  // no setting
}

TEST(ShownVariables, NamesOfSecrets) {
  for (const char* name :
       {"GLOO_PASS", "UCX_PWD", "NCCL_API_TOKEN", "OMPI_MCA_secret_thing", "FI_AUTH_KEY"})
    EXPECT_TRUE(names_a_secret(name)) << name;
  for (const char* name : {"NCCL_ALGO", "OMP_WAIT_POLICY", "OMPI_MCA_btl", "KMP_BLOCKTIME"})
    EXPECT_FALSE(names_a_secret(name)) << name;
}

}  // namespace
}  // namespace scalemark::shown_variables_test
