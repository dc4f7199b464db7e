// The console says what the comparison record says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/compare_support.hpp"
#include "report/tables.hpp"

namespace scalemark::comparison_table_test {
namespace {
using testing::AllOf;
using testing::HasSubstr;

Comparison record_of(const std::vector<ResultSet>& sets, const CompareQuestions& questions = {}) {
  const Matching matching = match_sets(sets, questions.varied);
  return make_comparison(sets, matching, questions, {compare_sets(sets, matching, questions)});
}

Comparison two_sets() {
  ResultSet a = test::rates("tcp", {100, 101, 102, 103, 104});
  ResultSet b = test::rates("rdma", {120, 121, 122, 123, 124});
  a.launches.push_back(test::launch(50, 2));
  b.launches.push_back(test::launch(60, 2));
  a.launches.push_back(test::launch(70, 4));
  b.left_out = {"2 records with status failed"};
  return record_of({a, b});
}

TEST(ComparisonTable, SaysWhatTheRecordSays) {
  const std::string table = comparison_table(two_sets());
  EXPECT_THAT(table, HasSubstr("rdma against tcp: images/sec, n launches\n"));
  EXPECT_THAT(table, testing::ContainsRegex(
                         "1 +5 +102\\.0 +122\\.0 +\\+19\\.6 % +\\[\\+1[0-9.]+, \\+2[0-9.]+\\] % "
                         "+0\\.0079 +[0-9.]+ % +faster\n"));
  EXPECT_THAT(table, testing::ContainsRegex("2 +1 +50\\.00 +60\\.00 +\\+20\\.0 % +- +- +- +too few "
                                            "launches \\(n=1; 5 needed\\)\n"));
  EXPECT_THAT(table, AllOf(HasSubstr("not compared: ranks 4, in tcp but not in rdma\n"),
                           HasSubstr("left out of rdma: 2 records with status failed\n"),
                           HasSubstr("two samples: permutation test"),
                           testing::Not(HasSubstr("sign-flip"))));
}

TEST(ComparisonTable, InMarkdownHasTheSameCells) {
  const std::string text = comparison_markdown(two_sets());
  EXPECT_THAT(text, AllOf(HasSubstr("| ranks | n | tcp | rdma | difference |"),
                          HasSubstr("| 1 | 5 | 102.0 | 122.0 | +19.6 % |"),
                          HasSubstr("- left out of rdma: 2 records")));
}

TEST(ComparisonTable, SaysHowPairsAndRoundsCame) {
  const std::vector<double> rates{1, 2, 3, 4, 5};
  const std::string pairs = comparison_table(
      record_of({test::swept(test::rates("a", rates)), test::swept(test::rates("b", rates))}));
  EXPECT_THAT(pairs, AllOf(HasSubstr("5 pairs"), HasSubstr("sign-flip"), HasSubstr("93.75 %"),
                           HasSubstr("too few launches (n=5; 6 needed)")));
  ResultSet curve = test::rates("c", {1});
  curve.launches[0].repeats = {{1, 1}, {2, 1}};
  ResultSet other = curve;
  other.label = "d";
  EXPECT_THAT(comparison_table(record_of({curve, other})),
              AllOf(HasSubstr("n repeats"), HasSubstr("warning: repeats within one launch"),
                    HasSubstr("too few repeats (n=2; 5 needed)")));
}

TEST(ComparisonTable, EfficiencyHasATableOfItsOwn) {
  ResultSet a = test::rates("a", {100, 101, 102, 103, 104});
  for (const double rate : {160, 161, 162, 163, 164}) a.launches.push_back(test::launch(rate, 2));
  ResultSet b = a;
  b.label = "b";
  const std::vector<ResultSet> sets{a, b};
  const Matching matching = match_sets(sets, {});
  CompareQuestions efficiency;
  efficiency.metric = "efficiency";
  const Comparison record =
      make_comparison(sets, matching, {},
                      {compare_sets(sets, matching, {}), compare_sets(sets, matching, efficiency)});
  EXPECT_EQ(record.further->size(), 1U);
  EXPECT_THAT(comparison_table(record),
              AllOf(HasSubstr("b against a: images/sec, n launches\n"),
                    HasSubstr("b against a: efficiency (of the smallest point), n launches\n"),
                    testing::ContainsRegex("2 +5 +0\\.79[0-9]+ +0\\.79[0-9]+ +\\+0\\.0 %")));
}

TEST(ComparisonTable, SaysWhatEquivalenceWouldTake) {
  CompareQuestions questions;
  questions.test.equivalent_percent = 2;
  const std::vector<double> quiet{100, 100.1, 99.9, 100.2, 99.8}, noisy{100, 104, 97, 102, 96};
  const std::string within =
      comparison_table(record_of({test::rates("a", quiet), test::rates("b", quiet)}, questions));
  EXPECT_THAT(within, AllOf(HasSubstr("p (within 2 %)"), HasSubstr("0.0040  equivalent within 2 %"),
                            testing::Not(HasSubstr("neither"))));
  const Comparison open = record_of({test::rates("a", noisy), test::rates("b", noisy)}, questions);
  EXPECT_THAT(comparison_table(open),
              HasSubstr("b, ranks 1: neither different nor equivalent within 2 %; were there no "
                        "difference, " +
                        std::to_string(*open.points[0].repeats_for_equivalence) +
                        " launches of each would show it in 80 % of such comparisons"));
}

TEST(ComparisonTable, TextOfRecordsIsCleaned) {
  ResultSet a = test::rates("a|<b>", {1, 2}), b = test::rates("red\x1B[31m", {1, 2});
  for (ResultSet* set : {&a, &b}) {
    for (MeasuredLaunch& one : set->launches) one.unit = "images\n::error::/sec";
    set->launches.push_back(test::launch(1, 1, "`x`\x07"));
    set->launches.back().unit = a.launches[0].unit;
  }
  b.left_out = {"1 record with status \x1B]0;title\x07"};
  const Comparison record = record_of({a, b});
  for (const std::string& text : {comparison_table(record), comparison_markdown(record)}) {
    EXPECT_EQ(text.find('\x1B'), text.npos);
    EXPECT_EQ(text.find('\x07'), text.npos);
    EXPECT_EQ(text.find("\n::error::"), text.npos);
  }
  EXPECT_THAT(comparison_markdown(record),
              AllOf(HasSubstr("| a\\|&lt;b&gt; |"), HasSubstr("precision=\\`x\\`"),
                    testing::Not(HasSubstr("<b>"))));
  EXPECT_THAT(comparison_table(record), HasSubstr("a|<b>"));
}

TEST(HistoryTable, MarksChangesAndSaysWhatWasFound) {
  HistoryResult history;
  history.points = 1;
  for (const char* label : {"c0", "c1\x1B[2J", "c2"})
    history.sets.push_back({{label, label, {"id"}, {}, {}, {}}, 1});
  history.changes = {{"c0", history.sets[1].label, -10, 0.001, ChangeKind::dip,
                      history.sets[1].label, Unknown{"of the mean"}}};
  history.set_noise_percent = 0.5;
  history.launch_noise_percent = 0.25;
  history.detectable_percent = 2;
  history.sets_needed = std::vector<record::SetsNeeded>{{1, Unknown{"more than 40"}}, {5, 6U}};
  history.warnings = {"unlike\nsystems"};
  const std::string table = history_table(history), markdown = history_markdown(history);
  EXPECT_THAT(table, AllOf(HasSubstr(" -10.0 % (p = 0.0010), dip until c1"),
                           HasSubstr("changes of level over 1 common point; advice"),
                           HasSubstr("differ by 0.50 % (their launches make 0.25 %); a step of 2.0 "
                                     "% in the middle of 3 sets"),
                           HasSubstr("needs: 1 % more than 40, 5 % 6.\nunlike systems\n")));
  EXPECT_EQ((table + markdown).find('\x1B'), table.npos);
  EXPECT_THAT(markdown, HasSubstr("| c2 | 1 | 1.0000 | - |"));
  history.alpha = 0.01;
  record::NewestSet newest;
  newest.set = "c2";
  newest.verdict = GateVerdict::regressed;
  newest.since = std::string("c0");
  newest.sets = 2;
  newest.slowdown_percent = 10;
  newest.interval_percent = Interval{8, 12};
  newest.p = 0.0004;
  newest.points.resize(2);
  newest.points[1].ranks = 4;
  newest.points[1].slowdown_percent = 20;
  newest.points[1].regressed = true;
  history.newest = newest;
  EXPECT_THAT(
      history_table(history),
      HasSubstr("newest set c2: regressed, -10.0 % against the level since c0 (2 sets), 95 % "
                "[-12.0, -8.0] %, p = 0.0004 at 0.01; slower: ranks 4 (-20.0 %)\n"));
  newest.verdict = GateVerdict::inconclusive;
  newest.points.clear();
  newest.detectable_percent = 3;
  history.newest = newest;
  EXPECT_THAT(history_table(history), HasSubstr("p = 0.0004 at 0.01; 3.0 % would be found\n"));
  newest.slowdown_percent = Unknown{"too few sets"};
  history.newest = newest;
  EXPECT_THAT(history_table(history), HasSubstr("newest set c2: inconclusive: too few sets\n"));
  history.changes[0].point = std::string("ranks 4");
  EXPECT_THAT(history_table(history), HasSubstr("ranks 4: -10.0 % (p = 0.0010), dip until c1"));
  history.changes.clear();
  history.drift = record::HistoryDrift{3, 0.01};
  EXPECT_THAT(history_table(history),
              HasSubstr("drift of +3.0 % from the first set to the last (p = 0.0100), no step"));
}

}  // namespace
}  // namespace scalemark::comparison_table_test
