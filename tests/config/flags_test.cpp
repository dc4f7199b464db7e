// Messages about words of a command line name the flag as its user wrote it.
#include "config/flags.hpp"

#include "config_support.hpp"

namespace scalemark::flags_test {
namespace {

using ::testing::StartsWith;

FlagReader reader(const Words& words) {
  cxxopts::Options options("program");
  options.add_options()("set", "", cxxopts::value<Words>())(
      "label", "", cxxopts::value<std::string>())("pairs", "", cxxopts::value<std::string>())(
      "plan", "", cxxopts::value<Words>());
  options.parse_positional({"plan"});
  return FlagReader(parse_flags("program", options, words));
}

TEST(FlagReader, RefusalsBeginWithTheFlag) {
  EXPECT_THAT(refusal([] { reader({"--label", "a\nb"}).text("label"); }), StartsWith("--label: "));
  EXPECT_THAT(refusal([] {
                reader({"--set", "x", "--set", "a\nb"}).texts("set");
              }),
              StartsWith("--set: "));
  EXPECT_THAT(refusal([] {
                reader({"--pairs", "x"}).whole("pairs", 1, 9);
              }),
              StartsWith("--pairs: "));
  EXPECT_THAT(refusal([] {
                reader({"--pairs", "1,,2"}).wholes("pairs", 1, 9);
              }),
              StartsWith("--pairs: "));
  EXPECT_THAT(refusal([] { reader({"--pairs", "1,,2"}).keys("pairs"); }), StartsWith("--pairs: "));
  EXPECT_THAT(refusal([] { reader({"--pairs", "0"}).positive("pairs"); }), StartsWith("--pairs: "));
}

TEST(FlagReader, WhatCxxoptsRefusesHasDashesToo) {
  EXPECT_EQ(refusal([] {
              reader({"--labl", "x"});
            }),
            "program: --labl does not exist; see program --help");
  EXPECT_EQ(refusal([] { reader({"--label"}); }),
            "program: --label is missing an argument; see program --help");
}

TEST(FlagReader, AWordWithoutAFlagHasNoDashesInRefusals) {
  EXPECT_EQ(reader({"a.json"}).positionals("plan"), Words{"a.json"});
  EXPECT_THAT(refusal([] { reader({"a\nb"}).positionals("plan"); }), StartsWith("plan: "));
}

}  // namespace
}  // namespace scalemark::flags_test
