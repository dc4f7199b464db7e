// The parser of files that anyone may have written: nothing is dropped, and nothing costs more than
// its size.
#include "config/json_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "support/test_folder.hpp"

namespace scalemark::json_text_test {
namespace {
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_json_text(text, 8);
  } catch (const JsonFault& fault) {
    return fault.what();
  }
  ADD_FAILURE() << text.substr(0, 100) << " was read";
  return "";
}

TEST(JsonText, GivesTheTreeOfTheText) {
  const std::string text =
      R"({"b": [1, -2, 3.5, 18446744073709551615, true, null, "\u00e9"], "a": {"x": {}, "y": []}})";
  EXPECT_EQ(parse_json_text(text, 8), Json::parse(text));
  EXPECT_EQ(parse_json_text(text, 8).dump(), Json::parse(text).dump());  // in their order
  EXPECT_EQ(parse_json_text(" 7 ", 8), 7);
}

TEST(JsonText, RefusesAKeyTwiceAtAnyDepth) {
  EXPECT_EQ(refusal(R"({"a": 1, "b": 2, "a": 1})"), "the key \"a\" is there twice");
  EXPECT_EQ(refusal(R"({"p": [{}, {"q": {"a": 1, "a": 2}}]})"),
            "the key \"a\" is there twice in \"/p/1/q\"");
  EXPECT_NO_THROW(parse_json_text(R"([{"a": 1}, {"a": 2, "b": {"a": 3}}])", 8));
}

TEST(JsonText, RefusesWhatFollowsAZeroByte) {
  EXPECT_EQ(refusal(std::string("{}\0 trailing", 12)), "a zero byte at byte 2");
  EXPECT_EQ(refusal(std::string("{\"a\": \"x\0y\"}", 12)), "a zero byte at byte 8");
}

TEST(JsonText, NamesLineAndColumnAndShortensTokens) {
  EXPECT_THAT(refusal("{\"a\": 1,\n  oops}"), HasSubstr("line 2, column 3"));
  EXPECT_LT(refusal("[\"" + std::string(1'000'000, 'x')).size(), 400u);
  EXPECT_THAT(refusal("1e999"), HasSubstr("1e999"));
  EXPECT_THAT(refusal("\"\xff\""), HasSubstr("UTF-8"));
}

TEST(JsonText, DepthHasALimit) {
  EXPECT_NO_THROW(parse_json_text(std::string(8, '[') + std::string(8, ']'), 8));
  EXPECT_EQ(refusal(std::string(1'000'000, '[')), "nested deeper than 8 levels");
}

/// A builder that looks every key up would compare 500 million times.
TEST(JsonText, ManyKeysAreRead) {
  std::string text = "{";
  for (int i = 0; i < 30'000; ++i) text += fmt::format("{}\"key{}\":{}", i > 0 ? "," : "", i, i);
  EXPECT_EQ(parse_json_text(text + "}", 8).size(), 30'000u);
  EXPECT_EQ(refusal(text + ",\"key0\":1}"), "the key \"key0\" is there twice");
}

TEST(JsonText, MemoryHasALimit) {
  std::string empty = "[{}";
  for (int i = 0; i < 1'400'000; ++i) empty += ",{}";
  EXPECT_THAT(refusal(empty + "]"), HasSubstr("MiB of memory"));
}

}  // namespace
}  // namespace scalemark::json_text_test

// Whatever stands at a path that a user names is read to its end or refused at once.
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
