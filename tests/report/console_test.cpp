// Golden text of tf_cnn_benchmarks' lines and of durations.
#include "report/console.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "streams.hpp"

namespace scalemark::console_test {
namespace {

struct Lines {
  std::vector<std::string> text;
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& line) { text.push_back(line); };
  }
};

TEST(StepLines, HeaderNamesTheUnitAsTfCnnBenchmarksDoes) {
  Lines lines;
  StepLines("images/sec", 32, lines.sink()).header();
  StepLines("tokens/sec", 32, lines.sink()).header();
  EXPECT_EQ(lines.text[0], "Step\tImg/sec\ttotal_loss");
  EXPECT_EQ(lines.text[1], "Step\tTokens/sec\ttotal_loss");
}

TEST(StepLines, MeanErrorAndJitterAreCumulative) {
  Lines lines;
  StepLines printer("images/sec", 100, lines.sink());
  printer.step(1, 8.1366, {0.5});
  // v = 200 100 50; mean 100 / mean(0.5 1 2) = 85.7; numpy.std(v) = 62.361, / sqrt(3) = 36.0;
  // median 100, deviations 100 0 50, median 50, x 1.4826 = 74.1
  printer.step(3, 7.9994, {0.5, 1, 2});
  EXPECT_EQ(lines.text[0], "1\timages/sec: 200.0 +/- 0.0 (jitter = 0.0)\t8.137");
  EXPECT_EQ(lines.text[1], "3\timages/sec: 85.7 +/- 36.0 (jitter = 74.1)\t7.999");
}

TEST(StepLines, TotalStandsBetweenTwoRulesOf64Dashes) {
  Lines lines;
  StepLines("images/sec", 32, lines.sink()).total(138.946);
  const std::string rule = "----------------------------------------------------------------";
  EXPECT_EQ(lines.text, (std::vector<std::string>{rule, "total images/sec: 138.95", rule}));
}

TEST(StepLines, WithoutStepsPrintsNothing) {
  Lines lines;
  StepLines("images/sec", 32, lines.sink()).step(1, 0, {});
  EXPECT_TRUE(lines.text.empty());
}

TEST(FormatDuration, ReadsAsPeopleSay) {
  EXPECT_EQ(format_duration(0.2), "less than 1 s");
  EXPECT_EQ(format_duration(45.4), "45 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(150), "2 min 30 s");
  EXPECT_EQ(format_duration(3900), "1 h 05 min");
  EXPECT_EQ(format_duration(7199), "2 h 00 min");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "unknown");
  EXPECT_EQ(about_duration(0.2), "less than 1 s");
  EXPECT_EQ(about_duration(150), "about 2 min 30 s");
}

TEST(Counted, OneIsNoPlural) {
  EXPECT_EQ(counted(1, "point"), "1 point");
  EXPECT_EQ(counted(0, "point"), "0 points");
  EXPECT_EQ(counted(2, "launch"), "2 launches");
}

}  // namespace
}  // namespace scalemark::console_test
