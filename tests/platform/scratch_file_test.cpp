// A scratch file is written, read and gone; a folder that can't hold it is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "platform/posix_file.hpp"
#include "platform/tree.hpp"

namespace scalemark::scratch_file_test {
namespace {

TEST(ScratchFile, LeavesNothing) {
  test::Tree tree;
  const ScratchRates rates = measure_scratch_file(tree.root(), (2 << 20) + 5);
  EXPECT_EQ(rates.bytes, 2 << 20);
  EXPECT_GT(rates.write_bytes_per_second, 0);
  EXPECT_GT(rates.read_bytes_per_second, 0);
  EXPECT_TRUE(std::filesystem::is_empty(tree.root()));
}

TEST(ScratchFile, NamesAFolderThatIsNotThere) {
  try {
    measure_scratch_file("/no/such/folder", 1);
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("/no/such/folder"),
                                               ::testing::HasSubstr("--scratch")));
  }
}

}  // namespace
}  // namespace scalemark::scratch_file_test
