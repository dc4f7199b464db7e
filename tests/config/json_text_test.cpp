// The parser of files that anyone may have written: nothing is dropped, and nothing costs more than
// its size.
#include "config/json_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
