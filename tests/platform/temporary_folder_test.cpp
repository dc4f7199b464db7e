#include <gtest/gtest.h>

#include <fstream>

#include "platform/posix_file.hpp"

namespace scalemark::temporary_folder_test {
namespace {
namespace fs = std::filesystem;

TEST(TemporaryFolder, IsPrivateAndGoneWithAllThatLiesInIt) {
  fs::path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    std::ofstream(path / "file") << "text";
    EXPECT_NE(TemporaryFolder().path(), path);
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace scalemark::temporary_folder_test
