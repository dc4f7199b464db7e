// The command line of `scalemark project`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/requests.hpp"
#include "commands/subcommands.hpp"

namespace scalemark::project_test {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

ProjectRequest read(const std::vector<std::string>& words) { return read_project_request(words); }

std::string refusal(const std::vector<std::string>& words) {
  try {
    read(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ProjectRequest, ReadsItsFlags) {
  const auto request = read({"c.json",
                             "--ranks",
                             "64,8,8",
                             "--link-gbit",
                             "25",
                             "--link_latency_us=5",
                             "--ranks_per_node",
                             "8",
                             "--budget",
                             "1e9samples",
                             "--base_budget",
                             "2.5epochs",
                             "--samples_per_epoch",
                             "1281167",
                             "--fit_ranks",
                             "1,2",
                             "--measured_link_gbit",
                             "10",
                             "--algorithm",
                             "tree",
                             "--global_batch_size",
                             "8192",
                             "--output",
                             "p.json",
                             "--json"});
  EXPECT_EQ(request.curve, "c.json");
  const ProjectionQuestions& questions = request.questions;
  EXPECT_THAT(questions.ranks, ElementsAre(8, 64));
  EXPECT_EQ(questions.link_gbit, 25);
  EXPECT_DOUBLE_EQ(*questions.link_latency_seconds, 5e-6);
  EXPECT_EQ(questions.ranks_per_node, 8);
  EXPECT_EQ(questions.budget->unit, Budget::Unit::samples);
  EXPECT_EQ(questions.budget->amount, 1e9);
  EXPECT_EQ(questions.base_budget->amount, 2.5);
  EXPECT_EQ(questions.samples_per_epoch, 1281167);
  EXPECT_THAT(questions.fit.fit_ranks, ElementsAre(1, 2));
  EXPECT_EQ(questions.fit.link_gbit, 10);
  EXPECT_EQ(questions.fit.algorithm, Allreduce::tree);
  EXPECT_EQ(questions.global_batch, 8192);
  EXPECT_EQ(request.output.file, "p.json");
  EXPECT_TRUE(request.output.json);
}

TEST(ProjectRequest, RefusesWhatIsWrong) {
  EXPECT_THAT(refusal({}), HasSubstr("takes one curve"));
  EXPECT_THAT(refusal({"a", "b"}), HasSubstr("takes one curve"));
  EXPECT_THAT(refusal({"a", "--ranks", "8,"}), HasSubstr("--ranks"));
  EXPECT_THAT(refusal({"a", "--ranks", "0"}), HasSubstr("from 1 to 100000000"));
  EXPECT_THAT(refusal({"a", "--ranks", "1e3"}), HasSubstr("\"1e3\" is not a whole number"));
  EXPECT_THAT(refusal({"a", "--link_gbit", "-1"}), HasSubstr("not a number above 0"));
  EXPECT_THAT(refusal({"a", "--algorithm", "rign"}), HasSubstr("did you mean ring?"));
  for (const char* amount : {"epochs", "-3epochs", "3", "3 weeks", "3xepochs"})
    EXPECT_THAT(refusal({"a", "--budget", amount}), HasSubstr("such as 300000steps")) << amount;
  EXPECT_THAT(refusal({"a", "--json", "--markdown"}), HasSubstr("leave one out"));
  EXPECT_NE(refusal({"a", "--rank", "8"}), "");
}

TEST(ProjectRequest, TheHelpNamesEveryFlag) {
  const std::string help = full_help(commands::project_help({}), 80);
  for (const char* flag :
       {"--ranks", "--batch_size", "--global_batch_size", "--link_gbit", "--link_latency_us",
        "--ranks_per_node", "--budget", "--samples_per_epoch", "--base_budget", "--fit_ranks",
        "--measured_link_gbit", "--algorithm", "--json", "--markdown", "--output"})
    EXPECT_THAT(help, HasSubstr(flag));
}

}  // namespace
}  // namespace scalemark::project_test
