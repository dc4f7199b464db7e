// What a program says, and that no shell reads its words.
#include "launch/program_output.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "error.hpp"
#include "launch/gate_builds.hpp"
#include "support/test_folder.hpp"

namespace scalemark::program_output_test {
namespace {
namespace fs = std::filesystem;

ProgramOutput shell(const std::string& text, ErrorStream errors = ErrorStream::ours,
                    std::optional<double> deadline_seconds = 600) {
  return output_of({{"sh", "-c", text}, {}, errors, deadline_seconds});
}

TEST(ProgramOutput, IsItsStdoutAndItsStatus) {
  const ProgramOutput said = shell("echo one; echo two; exit 3");
  EXPECT_EQ(said.text, "one\ntwo\n");
  EXPECT_EQ(said.status, 3);
  EXPECT_FALSE(said.is_ok());
  EXPECT_TRUE(shell("true").is_ok());
  EXPECT_EQ(shell("kill -9 $$").status, 128 + 9);
}

TEST(ProgramOutput, HoldsMoreThanAPipeDoes) {
  const std::string text = output_of({{"seq", "200000"}}).text;
  EXPECT_TRUE(text.ends_with("\n199999\n200000\n"));
  EXPECT_EQ(text.size(), 1288895U);
}

TEST(ProgramOutput, HasStderrWhereItIsAskedFor) {
  const std::string both = "echo out; echo err >&2";
  EXPECT_EQ(shell(both, ErrorStream::with_output).text, "out\nerr\n");
  EXPECT_EQ(shell(both, ErrorStream::dropped).text, "out\n");
}

TEST(ProgramOutput, NothingComesFromOurStdin) { EXPECT_EQ(output_of({{"cat"}}).text, ""); }

TEST(ProgramOutput, VariablesReplaceOurs) {
  setenv("SMK_TEST_WORD", "ours", 1);
  EXPECT_EQ(shell("echo $SMK_TEST_WORD").text, "ours\n");
  EXPECT_EQ(output_of({{"sh", "-c", "env | grep -c SMK_TEST_WORD; echo $SMK_TEST_WORD"},
                       {{"SMK_TEST_WORD", "an other"}}})
                .text,
            "1\nan other\n");
  unsetenv("SMK_TEST_WORD");
}

TEST(ProgramOutput, AProgramThatIsNotThereIs127) {
  EXPECT_EQ(output_of({{"/no/such/program"}}).status, 127);
  EXPECT_EQ(output_of({{"no-such-program-in-path"}}).status, 127);
}

TEST(ProgramOutput, AProgramMayGoOnWithoutItsStdout) {
  for (const std::optional<double> deadline : {std::optional<double>(600), std::optional<double>()})
    EXPECT_EQ(shell("exec >&-; sleep 0.1; exit 5", ErrorStream::ours, deadline).status, 5);
}

/// The child is over at once, and what it has started holds its stdout for ten minutes.
TEST(ProgramOutput, TheDeadlineEndsAllThatWasStarted) {
  std::array<int, 2> held{};
  ASSERT_EQ(pipe(held.data()), 0);
  const ProgramOutput said = shell("sleep 600 &", ErrorStream::ours, 0.5);
  EXPECT_TRUE(said.overdue);
  EXPECT_FALSE(said.is_ok());
  close(held[1]);
  char byte = 0;
  EXPECT_EQ(read(held[0], &byte, 1), 0) << "the sleep had this pipe too: it is gone";
  close(held[0]);
  EXPECT_EQ(shell("sleep 600", ErrorStream::ours, 0.5).status, 128 + 9);
  EXPECT_EQ(shell("exec >&-; sleep 600", ErrorStream::ours, 0.5).status, 128 + 9);
}

/// Each would leave the file `touched` in the working directory if a shell read it.
const std::vector<std::string> kHostile{"; touch touched;",
                                        "$(touch touched)",
                                        "`touch touched`",
                                        "| touch touched",
                                        "&& touch touched",
                                        "' ; touch touched ; '",
                                        "\" ; touch touched ; \"",
                                        "a b",
                                        "\n touch touched \n",
                                        "> touched",
                                        "*",
                                        "~",
                                        "$HOME",
                                        "\\"};

class HostileWords : public testing::Test {
 protected:
  HostileWords() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~HostileWords() override { fs::current_path(before_); }
  bool is_touched() const { return fs::exists(folder_.path() / "touched"); }

  TestFolder folder_;

 private:
  fs::path before_;
};

TEST_F(HostileWords, AreArgumentsAndNothingElse) {
  std::vector<std::string> command{"printf", "%s\\0"};
  std::string expected;
  for (const std::string& word : kHostile) {
    command.push_back(word);
    expected += word + '\0';
  }
  EXPECT_EQ(output_of({command}).text, expected);
  EXPECT_FALSE(is_touched());
}

TEST_F(HostileWords, NameAProgramAndNothingElse) {
  for (std::string name : kHostile) {
    std::erase(name, '/');
    const std::string path =
        folder_.write("programs/" + name, "#!/bin/sh\necho \"it is $0\"\n", true);
    EXPECT_EQ(output_of({{path}}).text, "it is " + path + "\n");
  }
  EXPECT_FALSE(is_touched());
}

TEST_F(HostileWords, OfABuildNameACommitThatIsNotThere) {
  for (const std::string& word : kHostile) {
    if (word == "~" || word == "*" || word == "\\") continue;  // they need no shell to be harmless
    EXPECT_THROW(build_of(word, "--base"), Error) << word;
    EXPECT_FALSE(is_touched()) << word;
  }
}

TEST_F(HostileWords, OfABuildsFolderAreItsName) {
  const std::string program = "#!/bin/sh\necho revision 0123abc\necho gate turns\n";
  for (const std::string& word : kHostile) {
    folder_.write(word + "/bin/scalemark", program, true);
    const Build build = build_of((folder_.path() / word).string(), "--base");
    EXPECT_EQ(build.revision, "0123abc") << word;
    EXPECT_FALSE(is_touched()) << word;
  }
}

}  // namespace
}  // namespace scalemark::program_output_test
