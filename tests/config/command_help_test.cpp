// Help in the width that there is, and what it takes its words from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/flags.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config_support.hpp"

namespace scalemark::command_help_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

CommandHelp help_of_tea() {
  return {"tea",
          "Makes tea.",
          {"[--flag]..."},
          {{"Pot",
            {{.name = "leaf",
              .value_name = "NAME",
              .text = "which; there are more",
              .standard = "assam",
              .words = {"assam", "oolong"},
              .often_used = true},
             {.name = "milk", .text = "with milk", .letter = 'm'}}}},
          {"scalemark tea --leaf oolong"},
          "Exit codes: 0 ok.\n"};
}

TEST(CommandHelp, AskedFor) {
  const auto asked = [](const Words& words) { return asked_help(words); };
  EXPECT_EQ(asked({}), HelpLength::none);
  EXPECT_EQ(asked({"--model", "--help"}), HelpLength::screen);
  EXPECT_EQ(asked({"-h"}), HelpLength::screen);
  EXPECT_EQ(asked({"--help", "all"}), HelpLength::all);
  EXPECT_EQ(asked({"--help=all"}), HelpLength::all);
  EXPECT_EQ(asked({"all"}), HelpLength::none);
}

TEST(CommandHelp, OfAScreenIsALineAFlagThatIsOftenUsed) {
  EXPECT_EQ(screen_help(help_of_tea(), 80),
            "Makes tea.\n"
            "Usage:\n"
            "  scalemark tea [--flag]...\n"
            "\n"
            "  --leaf NAME  which (assam, oolong; default: assam)\n"
            "\n"
            "Examples:\n"
            "  scalemark tea --leaf oolong\n"
            "\n"
            "Every flag: scalemark tea --help all\n");
  EXPECT_THAT(screen_help(help_of_tea(), 40), HasSubstr("--leaf NAME  which (default: assam)\n"));
}

TEST(CommandHelp, CompleteIsWrapped) {
  const std::string text = full_help(help_of_tea(), 60);
  EXPECT_THAT(text, HasSubstr("\n Pot options:\n"
                              "  --leaf NAME               which; there are more (assam,\n"
                              "                            oolong; default: assam)\n"
                              "  -m, --milk                with milk\n"));
  EXPECT_THAT(text, HasSubstr("Exit codes: 0 ok.\n"));
}

TEST(CommandHelp, WhatItNamesIsParsed) {
  const FlagReader flags(help_of_tea(), "cups", Words{"--leaf", "oolong", "-m", "one", "two"});
  EXPECT_EQ(flags.text("leaf"), "oolong");
  EXPECT_TRUE(flags.has("milk"));
  EXPECT_EQ(flags.positionals("cups"), (Words{"one", "two"}));
}

TEST(CommandHelp, OfKeysHasTheirWords) {
  const std::string text = full_help(key_help(Command::run), 80);
  EXPECT_THAT(text,
              AllOf(HasSubstr("smallnet, trivial; default: resnet50)\n"), HasSubstr("lamb, lars")));
  EXPECT_THAT(screen_help(key_help(Command::run), 80), Not(HasSubstr("--optimizer")));
}

TEST(CommandHelp, SaysOfRanksWhatTheCommandDoesWithThem) {
  EXPECT_THAT(screen_help(key_help(Command::scale), 80), HasSubstr("points of the curve"));
  for (const Command command : {Command::run, Command::infer, Command::preflight}) {
    for (const std::string& text :
         {screen_help(key_help(command), 80), full_help(key_help(command), 80)})
      EXPECT_THAT(text, AllOf(ContainsRegex("--ranks N +how many ranks to start"),
                              Not(HasSubstr("points of the curve"))))
          << name_of(command);
  }
  EXPECT_THAT(full_help(key_help(Command::run), 200), HasSubstr("started, else one)"));
}

/// Whoever comes from tf_cnn_benchmarks is told the flag that does it here, and that it exists.
TEST(FlagsOfOthers, AreToldWhatTakesTheirPlace) {
  EXPECT_EQ(
      refused({"--num_gpus=2"}),
      "--num_gpus: not a flag of scalemark: a rank has one GPU: mpirun -n N scalemark run, or "
      "scalemark scale --ranks N");
  for (const auto& [flag, instead] : {std::pair{"--num-epochs", "--num_batches"},
                                      {"--variable_update", "--reducer"},
                                      {"--xla", "--kernels"},
                                      {"--data_dir", "--data says"},
                                      {"--train_dir", "--checkpoint_dir"},
                                      {"--worker_hosts", "--hostfile"},
                                      {"--save_model_steps", "--checkpoint_every"}}) {
    const std::string told = refused({flag, "x"});
    EXPECT_THAT(told, HasSubstr(instead));
    EXPECT_THAT(told, Not(HasSubstr("unknown flag"))) << flag;
    for (std::size_t at = told.find("--", 2); at != told.npos; at = told.find("--", at + 2)) {
      const std::size_t end = told.find_first_of(" ;,", at);
      const std::string name = told.substr(at + 2, end == told.npos ? end : end - at - 2);
      EXPECT_TRUE(find_key(name)) << name << " in: " << told;
    }
  }
}

}  // namespace
}  // namespace scalemark::command_help_test
