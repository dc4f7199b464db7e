// The Trace Event Format: nested times stay nested, names are escaped, the file is whole or absent.
#include "result/trace_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "result/support.hpp"

namespace scalemark::trace_file_test {
namespace {

using test::contents;
using test::Tree;
using ::testing::ElementsAre;

double as_it_is(double seconds) { return seconds; }

RankTrace trace_of(std::vector<SpanLabel> labels, std::vector<Span> spans) {
  RankTrace trace;
  trace.labels = std::move(labels);
  trace.spans = std::move(spans);
  return trace;
}

/// Those that have a begin and an end.
std::vector<Json> spans_of(const std::string& events) {
  std::vector<Json> spans;
  for (const Json& event : Json::parse("[" + events + "]"))
    if (event.at("ph") == "X") spans.push_back(event);
  return spans;
}

std::vector<std::string> names_of(const std::vector<Json>& events) {
  std::vector<std::string> names;
  for (const Json& event : events) names.push_back(event.at("name"));
  return names;
}

TEST(TraceEvents, SayWhatASpanIs) {
  const auto spans = spans_of(
      trace_events(trace_of({{"aten::mm", "operator", "[2, 3], [3, 4]", "flops"}},
                            {{.label = 0, .thread = 1, .begin = 2, .end = 2.5, .amount = 48}}),
                   3, "n0", as_it_is));
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0], Json({{"ph", "X"},
                            {"name", "aten::mm"},
                            {"cat", "operator"},
                            {"pid", 3},
                            {"tid", 1},
                            {"ts", 2e6},
                            {"dur", 5e5},
                            {"args", {{"shapes", "[2, 3], [3, 4]"}, {"flops", 48}}}}));
}

TEST(TraceEvents, NameRanksAndThreads) {
  RankTrace trace;
  trace.threads = {{1, "steps"}, {1001, "communication 1"}};
  std::map<std::string, std::vector<Json>> named;
  for (const Json& event : Json::parse("[" + trace_events(trace, 2, "n\"1", as_it_is) + "]")) {
    EXPECT_EQ(event.at("ph"), "M");
    EXPECT_EQ(event.at("pid"), 2);
    named[event.at("name")].push_back(event);
  }
  ASSERT_EQ(named["process_name"].size(), 1u);
  EXPECT_EQ(named["process_name"][0]["args"]["name"], "rank 2 on n\"1");
  ASSERT_EQ(named["thread_name"].size(), 2u);
  EXPECT_EQ(named["thread_name"][1]["tid"], 1001);
  EXPECT_EQ(named["thread_name"][1]["args"]["name"], "communication 1");
}

TEST(TraceEvents, EscapeWhatIsNoText) {
  const auto spans = spans_of(trace_events(
      trace_of({{"a \"quoted\"\n\\ name", "operator", "", ""}, {"\xff\xfe", "operator", "", ""}},
               {{.label = 0, .end = 1}, {.label = 1, .begin = 2, .end = 3}}),
      0, "n0", as_it_is));
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["name"], "a \"quoted\"\n\\ name");
  EXPECT_FALSE(spans[0].contains("args"));
}

TEST(TraceEvents, ComeByThreadAndTimeTheOuterBeforeTheInner) {
  const auto spans = spans_of(
      trace_events(trace_of({{"outer", "", "", ""}, {"inner", "", "", ""}, {"other", "", "", ""}},
                            {{.label = 2, .thread = 2, .begin = 0, .end = 9},
                             {.label = 1, .thread = 1, .begin = 1, .end = 2},
                             {.label = 0, .thread = 1, .begin = 1, .end = 3}}),
                   0, "n0", as_it_is));
  EXPECT_THAT(names_of(spans), ElementsAre("outer", "inner", "other"));
}

TEST(TraceEvents, WhatIsNestedStaysNestedWhateverIsRounded) {
  // Begins and ends that rounding to nanoseconds moves by unlike amounts.
  std::vector<Span> spans;
  for (int i = 0; i < 1000; ++i) {
    const double begin = i * 1e-6 + i * 0.37e-9;
    spans.push_back({.label = 0, .begin = begin, .end = begin + 0.7e-6});
    spans.push_back({.label = 1, .begin = begin + 0.1e-9, .end = begin + 0.7e-6});
  }
  const auto events =
      spans_of(trace_events(trace_of({{"outer", "", "", ""}, {"inner", "", "", ""}}, spans), 0,
                            "n0", [](double seconds) { return 1.00002 * seconds - 5e-4; }));
  ASSERT_EQ(events.size(), 2000u);
  const auto nanoseconds = [](const Json& microseconds) {
    return std::llround(1e3 * microseconds.get<double>());
  };
  for (std::size_t i = 0; i < events.size(); i += 2) {
    const auto begin = nanoseconds(events[i]["ts"]), inner = nanoseconds(events[i + 1]["ts"]);
    EXPECT_LE(begin, inner);
    EXPECT_LE(inner + nanoseconds(events[i + 1]["dur"]), begin + nanoseconds(events[i]["dur"]));
    EXPECT_GE(nanoseconds(events[i + 1]["dur"]), 0);
  }
  EXPECT_LT(nanoseconds(events.front()["ts"]), 0);
}

TEST(TraceFile, HoldsTheEventsOfAllRanks) {
  const Tree tree;
  const auto path = tree.root() / "t.json";
  TraceFile file(path);
  const auto span = [](int rank) {
    return trace_events(trace_of({{"x", "", "", ""}}, {{.label = 0, .end = 1}}), rank, "n",
                        as_it_is);
  };
  file.add(span(0));
  file.add("");
  file.add(span(2));
  EXPECT_FALSE(std::filesystem::exists(path)) << "half a file";
  file.finish({{"model", "a\"b"}});
  const Json trace = Json::parse(contents(path));
  EXPECT_EQ(trace["otherData"]["model"], "a\"b");
  std::vector<int> ranks;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") ranks.push_back(event["pid"]);
  EXPECT_THAT(ranks, ElementsAre(0, 2));
}

TEST(TraceFile, WithoutEventsIsValid) {
  const Tree tree;
  TraceFile file(tree.root() / "t.json");
  file.finish(Json::object());
  EXPECT_EQ(Json::parse(contents(file.path()))["traceEvents"], Json::array());
}

TEST(TraceFile, ARefusalNamesItsFlag) {
  const Tree tree;
  try {
    TraceFile file(tree.root());
    FAIL() << "a folder was taken for a file";
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("with --trace"));
  }
}

TEST(TraceFile, WhoseFolderVanishesIsRefusedAndLeavesNothing) {
  const Tree tree;
  const auto folder = tree.root() / "gone";
  TraceFile file(folder / "t.json");
  std::filesystem::remove_all(folder);
  EXPECT_THROW(file.add("{}"), ResultError);
}

}  // namespace
}  // namespace scalemark::trace_file_test
