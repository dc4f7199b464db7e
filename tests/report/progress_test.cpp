// The plan and the lines of progress, on a clock of the test's own.
#include <gtest/gtest.h>

#include "report/console.hpp"

namespace scalemark::progress_test {
namespace {

struct Console {
  std::string text;
  double now = 1000;
  ProgressOutput output(bool updating) {
    return {[this](const std::string& part) { text += part; }, [this] { return now; }, updating};
  }
};

TEST(PlanProgress, PrintsThePlanWithItsEstimateFirst) {
  Console console;
  PlanProgress progress({{"round 1/1, 1 rank", 20}, {"round 1/1, 2 ranks", 70}},
                        console.output(false));
  EXPECT_EQ(console.text,
            "plan: 2 runs, about 1 min 30 s together\n"
            "  round 1/1, 1 rank, about 20 s\n"
            "  round 1/1, 2 ranks, about 1 min 10 s\n");
  console.text.clear();
  PlanProgress(std::vector<PlannedSegment>{{"round 1/1, 1 rank", 0.1}}, console.output(false));
  EXPECT_EQ(console.text,
            "plan: 1 run, less than 1 s together\n  round 1/1, 1 rank, less than 1 s\n");
}

TEST(PlanProgress, CorrectsTheTimeLeftByTheTimeTaken) {
  Console console;
  PlanProgress progress({{"a", 20}, {"b", 20}, {"c", 40}}, console.output(false));
  console.text.clear();
  console.now = 1500;  // what happens before the first run does not count
  progress.start();
  console.now += 30;  // instead of 20
  progress.finish(3.912, "images/sec");
  progress.start();
  console.now += 10;  // together 40 instead of 40
  progress.finish(7.5, "images/sec");
  progress.start();
  console.now += 41;
  progress.finish(15, "images/sec");
  EXPECT_EQ(console.text,
            "[1/3] a: 3.912 images/sec; about 1 min 30 s left\n"
            "[2/3] b: 7.500 images/sec; about 40 s left\n"
            "[3/3] c: 15.00 images/sec; took 1 min 21 s\n");
}

TEST(PlanProgress, OnATerminalWritesOverOneLine) {
  Console console;
  PlanProgress progress({{"a", 20}}, console.output(true));
  console.text.clear();
  progress.start();
  console.now += 20;
  progress.finish(1, "images/sec");
  EXPECT_EQ(console.text, "\r\x1b[K[1/1] a ...\r\x1b[K[1/1] a: 1.000 images/sec; took 20 s\n");
}

TEST(PlanProgress, ForProgramsEverythingIsAnEvent) {
  Console console;
  std::vector<std::pair<std::string, Json>> events;
  ProgressOutput output = console.output(false);
  output.event = [&](std::string_view event, const Json& fields) {
    events.emplace_back(event, fields);
  };
  PlanProgress progress({{"a", 20}, {"b", 30}}, output);
  progress.start();
  console.now += 40;
  progress.finish(7.5, "images/sec");
  EXPECT_EQ(console.text, "");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].first, "plan");
  EXPECT_EQ(events[0].second["runs"][1]["title"], "b");
  EXPECT_EQ(events[0].second["expected_seconds"], 50.);
  EXPECT_EQ(events[1].first, "run_begin");
  EXPECT_EQ(events[1].second["number"], 1);
  EXPECT_EQ(events[2].first, "run_end");
  EXPECT_EQ(events[2].second["throughput"], 7.5);
  EXPECT_EQ(events[2].second["left_seconds"], 60.);
}

}  // namespace
}  // namespace scalemark::progress_test
