// The table of subcommands, and what else names them: the overview, the manual page, README and the
// documents.
#include "commands/front_door.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "commands/list.hpp"
#include "commands/subcommands.hpp"

namespace scalemark::front_door_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

int call(std::vector<std::string> words) {
  words.insert(words.begin(), "scalemark");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return front_door(static_cast<int>(words.size()), argv.data());
}

std::string refusal(const std::vector<std::string>& words) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(call(words), 2);
  return testing::internal::GetCapturedStderr();
}

TEST(Subcommands, EachHasItsLineInTheOverview) {
  const std::string text = overview();
  std::set<std::string_view> names;
  for (const Subcommand& subcommand : kSubcommands) {
    EXPECT_TRUE(names.insert(subcommand.name).second) << subcommand.name;
    // As the shell completion reads it.
    EXPECT_THAT(std::string(subcommand.name), MatchesRegex("[a-z]+"));
    EXPECT_THAT(text, HasSubstr("\n  " + std::string(subcommand.name) + "  "));
    EXPECT_THAT(text, HasSubstr("  " + std::string(subcommand.purpose) + "\n"));
    EXPECT_LE(subcommand.purpose.size(), 90u) << subcommand.name;
  }
}

TEST(Subcommands, EachAnswersHelp) {
  for (const Subcommand& subcommand : kSubcommands) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(call({std::string(subcommand.name), "--help"}), 0);
    EXPECT_THAT(testing::internal::GetCapturedStdout(),
                HasSubstr("scalemark " + std::string(subcommand.name)));
  }
}

/// The texts of these files, one after the other.
std::string texts_of(const std::vector<std::filesystem::path>& folders,
                     const std::string& extension) {
  std::string texts;
  for (const auto& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == extension)
        texts += (std::ostringstream() << std::ifstream(entry.path()).rdbuf()).str();
  return texts;
}

/// CONTRIBUTING.md, "Adding a subcommand".
TEST(Subcommands, EachHasItsFileItsPageAndItsTest) {
  const std::filesystem::path source = SCALEMARK_SOURCE_DIR;
  const std::set<std::string_view> of_the_engine{"run", "scale", "infer", "preflight"};
  const std::string pages = texts_of({source, source / "docs"}, ".md");
  const std::string tests = texts_of({source / "tests" / "programs"}, ".py") +
                            texts_of({source / "tests" / "commands"}, ".cpp");
  for (const Subcommand& subcommand : kSubcommands) {
    const std::string name(subcommand.name);
    const std::string file = of_the_engine.contains(name) ? "measure.cpp" : name + ".cpp";
    EXPECT_TRUE(std::filesystem::exists(source / "src" / "commands" / file)) << file;
    EXPECT_THAT(pages, HasSubstr("scalemark " + name));
    EXPECT_THAT(tests, HasSubstr("\"" + name + "\""));
  }
}

TEST(FrontDoor, UnknownSubcommandsAreRefused) {
  std::string names;
  for (const Subcommand& subcommand : kSubcommands)
    names += (names.empty() ? "" : ", ") + std::string(subcommand.name);
  EXPECT_EQ(refusal({"swep"}),
            "scalemark: unknown subcommand \"swep\"; did you mean sweep? (legal: " + names +
                "; see scalemark --help)\n");
  EXPECT_EQ(refusal({"study"}), "scalemark: scalemark study is not available in this version\n");
  EXPECT_EQ(refusal({}), overview());
}

TEST(Lists, ModelsAndConfigs) {
  EXPECT_THAT(models_table(), HasSubstr("resnet50"));
  EXPECT_THAT(models_table(), HasSubstr("25557032"));
  const auto configs = shipped_configs(SCALEMARK_SOURCE_DIR "/build/dev/bin/scalemark");
  EXPECT_GE(configs.size(), 4u);
  EXPECT_THAT(configs_table(configs), HasSubstr("quickstart.json"));
  EXPECT_THAT(configs_table(configs), HasSubstr("sweeps/threads.json"));
  EXPECT_THAT(shipped_configs("/nowhere/at/all/bin/scalemark"), IsEmpty());
}

}  // namespace
}  // namespace scalemark::front_door_test
