// The text that monitoring reads, and that a reader never sees half of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "result/monitoring.hpp"
#include "result/support.hpp"
#include "support/test_folder.hpp"

namespace scalemark::openmetrics_test {
namespace {
using testing::HasSubstr;
using testing::Not;

TEST(OpenMetrics, EverySampleHasItsTypeAndTheLabels) {
  LiveState state;
  state.labels = {{"model", "resnet50"}, {"label", "a \"b\"\\\n"}};
  state.running = true;
  state.steps = 12;
  state.throughput = 139.5;
  const std::string text = openmetrics_text(state);
  EXPECT_THAT(text, HasSubstr("# TYPE scalemark_steps counter\n"));
  EXPECT_THAT(
      text,
      HasSubstr("scalemark_steps_total{model=\"resnet50\",label=\"a \\\"b\\\"\\\\\\n\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("scalemark_running{model"));
  EXPECT_THAT(text, HasSubstr("} 139.5\n"));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

TEST(OpenMetrics, WhatIsUnknownHasNoSample) {
  LiveState state;
  state.loss = std::nan("");
  const std::string text = openmetrics_text(state);
  EXPECT_THAT(text, Not(HasSubstr("scalemark_throughput")));
  EXPECT_THAT(text, Not(HasSubstr("scalemark_loss")));
}

TEST(ReplaceText, PutsTheNewTextInPlaceAndLeavesNothingBeside) {
  TestFolder folder;
  const auto path = folder.path() / "m.prom";
  replace_text(path, "old");
  replace_text(path, "new");
  EXPECT_EQ(test::contents(path), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(ReplaceText, NamesThePlaceThatCannotBeWritten) {
  TestFolder folder;
  const auto missing = folder.path() / "none" / "m.prom";
  try {
    replace_text(missing, "text");
    FAIL();
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--openmetrics " + missing.string()));
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
  std::filesystem::create_directory(folder.path() / "folder");
  EXPECT_THROW(replace_text(folder.path() / "folder", "text"), ResultError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace scalemark::openmetrics_test
