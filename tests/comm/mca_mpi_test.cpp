// Open MPI's parameters as it has them, whoever set them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/rank_group.hpp"
#include "support/mpi_support.hpp"

namespace scalemark::mca_mpi_test {
namespace {

TEST(McaParameters, AreThoseThatTheLibraryHas) {
  if (!testing::is_open_mpi()) GTEST_SKIP() << "Open MPI's own";
  const auto found = mca_parameters(testing::world(), {"btl", "pml", "no_such_parameter"});
  ASSERT_TRUE(found.contains("btl"));
  EXPECT_TRUE(found.contains("pml"));
  EXPECT_FALSE(found.contains("no_such_parameter"));
  if (const char* set = std::getenv("OMPI_MCA_btl")) {
    EXPECT_EQ(found.at("btl"), set);
  }
}

TEST(McaParameters, NumbersAreText) {
  if (!testing::is_open_mpi()) GTEST_SKIP() << "Open MPI's own";
  const auto found =
      mca_parameters(testing::world(), {"coll_libnbc_priority", "mpi_yield_when_idle"});
  ASSERT_FALSE(found.empty());
  for (const auto& [name, value] : found)
    EXPECT_TRUE(value.find_first_not_of("-0123456789") == value.npos && !value.empty()) << name;
}

}  // namespace
}  // namespace scalemark::mca_mpi_test
