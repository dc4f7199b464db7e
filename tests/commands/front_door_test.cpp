// The table of subcommands, and what else names them: the overview, the manual page, README and the
// documents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "commands/list.hpp"
#include "commands/subcommands.hpp"

namespace scalemark::front_door_test {
namespace {

using ::testing::HasSubstr;
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
    EXPECT_THAT(std::string(subcommand.name), MatchesRegex("[a-z]+"));
    EXPECT_THAT(text, HasSubstr("\n  " + std::string(subcommand.name) + "  "));
    EXPECT_THAT(text, HasSubstr("  " + std::string(subcommand.purpose) + "\n"));
    EXPECT_LE(subcommand.purpose.size(), 66u)  // 80 columns
        << subcommand.name;
  }
}

std::string printed(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(call(words), 0);
  return testing::internal::GetCapturedStdout();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Subcommands, EachAnswersHelpThatFitsAScreen) {
  for (const Subcommand& subcommand : kSubcommands) {
    const std::string name(subcommand.name);
    const std::string text = printed({name, "--help"}), all = printed({name, "--help", "all"});
    EXPECT_EQ(printed({"help", name}), text);
    EXPECT_EQ(printed({"help", name, "all"}), all);
    EXPECT_THAT(text, HasSubstr("scalemark " + name));
    EXPECT_LE(lines_of(text).size(), 24u) << text;
    for (const std::string& line : lines_of(text + all)) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_THAT(all, HasSubstr("Exit codes: 0 ")) << name;
  }
}

/// The flags "--x" of a text.
std::set<std::string> flags_in(const std::string& text) {
  std::set<std::string> flags;
  const std::regex flag("--([a-z_]+)");
  for (std::sregex_iterator found(text.begin(), text.end(), flag), end; found != end; ++found)
    flags.insert((*found)[1]);
  return flags;
}

TEST(Subcommands, EachHasThreeExamplesOfItsFlags) {
  for (const Subcommand& subcommand : kSubcommands) {
    const CommandHelp help = subcommand.help({{"--job", "infer"}, nullptr});
    EXPECT_EQ(help.name, subcommand.name);
    EXPECT_EQ(help.examples.size(), 3u) << help.name;
    const std::set<std::string> known = flags_in(grouped_flags(help.groups, 80));
    for (const std::string& example : help.examples) {
      EXPECT_THAT(example, HasSubstr("scalemark "));
      for (const std::string& flag : flags_in(example.substr(example.find("scalemark "))))
        EXPECT_TRUE(known.contains(flag)) << flag << " in: " << example;
    }
  }
}

TEST(ManualPage, HasEverySubcommandFlagAndExitCode) {
  const std::string page = printed({"help", "--man"});
  for (const Subcommand& subcommand : kSubcommands) {
    const std::size_t begin = page.find(".SS " + std::string(subcommand.name) + "\n");
    ASSERT_NE(begin, page.npos) << subcommand.name;
    const std::string section = page.substr(begin, page.find(".SS ", begin + 1) - begin);
    for (const FlagGroup& group : subcommand.help({}).groups)
      for (const FlagHelp& flag : group.flags)
        EXPECT_THAT(section, HasSubstr("\\-\\-" + flag.name)) << subcommand.name;
  }
  for (const ExitCodeWords& known : kExitCodes)
    EXPECT_THAT(page, HasSubstr("\n.B " + std::to_string(static_cast<int>(known.code)) + "\n" +
                                std::string(known.words) + "\n"));
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
  const std::set<std::string_view> of_the_engine{"run", "scale", "infer", "preflight", "join"};
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
  EXPECT_EQ(refusal({}), overview());
  EXPECT_THAT(refusal({"help", "swee"}), HasSubstr("did you mean sweep?"));
  EXPECT_THAT(refusal({"completion", "tcsh"}), HasSubstr("legal: bash, zsh, fish"));
  for (const std::string& line : lines_of(overview())) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Lists, ColumnsAreAsWideAsTheirContents) {
  std::vector<ModelFacts> models(kModels.begin(), kModels.begin() + 2);
  models[0].name = "a_model_with_a_name_that_nobody_foresaw";
  models[1].parameters = 1234567890123456789;
  models[1].description = "as described";
  const auto lines = lines_of(models_table(models));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1].find(std::string(models[0].unit)), lines[0].find("unit"));
  EXPECT_EQ(lines[2].find(std::string(models[1].unit)), lines[0].find("unit"));
  const std::size_t end = lines[0].find("parameters") + std::string("parameters").size();
  EXPECT_EQ(lines[1].find(std::to_string(models[0].parameters) + " "),
            end - std::to_string(models[0].parameters).size());
  EXPECT_EQ(lines[2].find("1234567890123456789 "), end - 19);
  EXPECT_EQ(lines[2].find("as described"), lines[1].find(std::string(models[0].description)));
  for (const std::string& line : lines) EXPECT_FALSE(line.ends_with(' ')) << line;
}

TEST(Lists, ModelsAndConfigs) {
  EXPECT_THAT(models_table(), HasSubstr("resnet50"));
  EXPECT_THAT(models_table(), HasSubstr("25557032"));
  const auto configs = shipped_configs(SCALEMARK_SOURCE_DIR "/build/dev/bin/scalemark");
  EXPECT_GE(configs.size(), 4u);
  EXPECT_THAT(configs_table(read_configs(configs)), HasSubstr("quickstart.json"));
  EXPECT_THAT(configs_table(read_configs(configs)), HasSubstr("sweeps/threads.json"));
  EXPECT_THROW(shipped_configs("/nowhere/at/all/bin/scalemark"), EnvironmentError);
  EXPECT_THAT(configs_table(read_configs(configs)), HasSubstr("studies/link_rate.json"));
}

}  // namespace
}  // namespace scalemark::front_door_test
