// Whatever stands at a path that a user names is read to its end or refused at once.
#include "config/input_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "support/test_folder.hpp"

namespace scalemark::input_file_test {
namespace {
using testing::HasSubstr;

std::string refusal(const std::filesystem::path& path, bool missing = false) {
  try {
    read_input_file(path, 100);
  } catch (const InputFault& fault) {
    EXPECT_EQ(fault.missing, missing) << path;
    return fault.what();
  }
  ADD_FAILURE() << path << " was read";
  return "";
}

TEST(InputFile, GivesAllBytesOfARegularFile) {
  const TestFolder tree;
  const std::string text("a\0b\n", 4);
  tree.write("f", text);
  EXPECT_EQ(read_input_file(tree.path() / "f", 4), text);
  EXPECT_FALSE(read_input_file("/proc/self/status", 1 << 16).empty());  // its size is told as 0
}

TEST(InputFile, RefusesWhatIsNoFile) {
  const TestFolder tree;
  EXPECT_THAT(refusal(tree.path() / "absent", true), HasSubstr("no such file"));
  EXPECT_THAT(refusal(tree.path()), HasSubstr("a folder"));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("a device"));
  const auto pipe = tree.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("a pipe"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (tree.path() / "socket").string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(refusal(tree.path() / "socket"), HasSubstr("a socket"));
  close(socket_fd);
}

TEST(InputFile, RefusesASizeBeforeReading) {
  const TestFolder tree;
  tree.write("f", std::string(101, 'x'));
  EXPECT_THAT(refusal(tree.path() / "f"), HasSubstr("larger than 100 bytes"));
  std::filesystem::resize_file(tree.path() / "f", std::uintmax_t{1} << 40);
  EXPECT_THAT(refusal(tree.path() / "f"), HasSubstr("larger than 100 bytes"));
}

}  // namespace
}  // namespace scalemark::input_file_test
