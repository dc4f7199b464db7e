// JSON read as nlohmann's own builder reads it.
#include "result/parse_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "result/support.hpp"

namespace scalemark::parse_json_test {
namespace {

/// Byte for byte, so that the order of keys and the types of numbers are compared too.
void expect_as_parsed(const std::string& text) {
  EXPECT_EQ(parse_json(text), Json::parse(text)) << text;
  EXPECT_EQ(parse_json(text).dump(), Json::parse(text).dump()) << text;
}

std::string complaint(const std::string& text) {
  try {
    parse_json(text);
  } catch (const Json::exception& error) {
    return error.what();
  }
  ADD_FAILURE() << text << " was not refused";
  return "";
}

std::string complaint_of_nlohmann(const std::string& text) {
  try {
    return Json::parse(text).dump();
  } catch (const Json::exception& error) {
    return error.what();
  }
}

TEST(ParseJson, IsWhatNlohmannMakesOfIt) {
  for (const char* text :
       {"null", "true", "7", "-7", "7.0", "1e3", "18446744073709551615", "-9223372036854775808",
        "36893488147419103232", R"("a\u00e9\n\"b")", "[]", "{}", "[[], [[]], {}]",
        R"({"z": 1, "a": {"y": [1, {"x": null}], "b": {}}, "m": [false, "s"]})",
        R"([1, {"a": [2, 3], "b": {"c": 4}}, 5])"})
    expect_as_parsed(text);
}

TEST(ParseJson, OfAKeyThatIsThereTwiceTheLastValueCounts) {
  expect_as_parsed(R"({"a": 1, "b": 2, "a": {"c": 3, "c": 4}})");
  EXPECT_EQ(parse_json(R"({"a": 1, "b": 2, "a": 3})").dump(), R"({"a":3,"b":2})");
}

TEST(ParseJson, WhatIsPublishedIsAsParsed) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SCALEMARK_SOURCE_DIR) / "results/baselines")) {
    if (entry.path().extension() != ".json") continue;
    expect_as_parsed(test::contents(entry.path()));
    ++files;
  }
  EXPECT_GE(files, 10);
}

TEST(ParseJson, SaysWhatIsWrongAndWhere) {
  for (const char* text : {"", "{", "[1,", R"({"a" 1})", "1e999", "[NaN]", "\"\xff\"", "{} {}"}) {
    EXPECT_EQ(complaint(text), complaint_of_nlohmann(text));
    EXPECT_THAT(complaint(text), testing::HasSubstr("[json.exception."));
  }
}

}  // namespace
}  // namespace scalemark::parse_json_test
