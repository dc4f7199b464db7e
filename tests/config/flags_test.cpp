// Messages about words of a command line name the flag as its user wrote it.
#include "config/flags.hpp"

#include "config_support.hpp"

namespace scalemark::flags_test {
namespace {

using ::testing::StartsWith;

FlagReader reader(const Words& words) {
  const FlagGroup flags{"Flags",
                        {{.name = "set", .value_name = "KEY=VALUE", .repeated = true},
                         {.name = "label", .value_name = "NAME"},
                         {.name = "pairs", .value_name = "N"},
                         {.name = "dry_run"}}};
  return FlagReader({"tea", "Makes tea.", {}, {flags}, {}, ""}, "plan", words);
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
            "scalemark tea: --labl does not exist; see scalemark tea --help");
  EXPECT_EQ(refusal([] { reader({"--label"}); }),
            "scalemark tea: --label is missing an argument; see scalemark tea --help");
}

TEST(FlagReader, AWordWithoutAFlagHasNoDashesInRefusals) {
  EXPECT_EQ(reader({"a.json"}).positionals("plan"), Words{"a.json"});
  EXPECT_EQ(reader({"a,b.json", "c"}).positionals("plan"), (Words{"a,b.json", "c"}));
  EXPECT_THAT(refusal([] { reader({"a\nb"}).positionals("plan"); }), StartsWith("plan: "));
}

TEST(FlagReader, ReadsNamesInEitherSpellingAndLeavesValuesAsTheyAre) {
  const FlagReader flags = reader({"--dry-run", "--label", "--a-b", "--pairs=1-2", "c-d"});
  EXPECT_TRUE(flags.has("dry_run"));
  EXPECT_EQ(flags.text("label"), "--a-b");
  EXPECT_EQ(flags.text("pairs"), "1-2");
  EXPECT_EQ(flags.positionals("plan"), Words{"c-d"});
}

TEST(FlagReader, TakesWhatFollowsTwoDashesForNoFlag) {
  const FlagReader flags = reader({"--label=x", "--", "--dry-run"});
  EXPECT_FALSE(flags.has("dry_run"));
  EXPECT_EQ(flags.positionals("plan"), Words{"--dry-run"});
}

TEST(ReadWords, TellsFlagsValuesAndOtherWords) {
  const Words words{"a", "--my-name", "--x", "--b=", "--my_name"};
  const auto read = read_words(words, [](const std::string& name) { return name == "my_name"; });
  ASSERT_EQ(read.size(), 4U);
  EXPECT_EQ(read[0].name, "");
  EXPECT_EQ(read[0].written, Words{"a"});
  EXPECT_EQ(read[1].name, "my_name");
  EXPECT_EQ(read[1].value, "--x");
  EXPECT_EQ(read[1].written, (Words{"--my-name", "--x"}));
  EXPECT_EQ(read[2].value, "");
  EXPECT_EQ(read[3].name, "my_name");
  EXPECT_EQ(read[3].value, std::nullopt);  // nothing follows
}

}  // namespace
}  // namespace scalemark::flags_test
