// A verdict as text, Markdown, JUnit XML and an annotation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/compare_support.hpp"
#include "analysis/gate/judge.hpp"
#include "report/tables.hpp"

namespace scalemark::verdict_report_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Verdict record_of(double slowdown, const std::string& label = "new") {
  const std::vector<double> base(8, 100), fresh(8, 100 * (1 - slowdown));
  const std::vector<ResultSet> sets{test::swept(test::rates("base", base)),
                                    test::swept(test::rates(label, fresh))};
  const Matching matching = match_sets(sets, {});
  return make_verdict({sets, matching, {}, {"a note"}, {"a warning"}, std::nullopt, nullptr},
                      judge(sets, matching, GateMode::sequential, {}));
}

Verdict failed_record() {
  return make_failed_verdict({Status::failed, "new, pair 1: killed <by> \"signal\""}, {},
                             {1, 40, 2.5, "steps", "failure"});
}

TEST(VerdictReport, OneSentenceSaysIt) {
  EXPECT_EQ(verdict_sentence(record_of(0.05)),
            "regressed: new is 5.0 % [5.0, 5.0] slower than base (8 pairs, p = 0.0039)");
  EXPECT_EQ(verdict_sentence(record_of(0)),
            "pass: new is 0.0 % [0.0, 0.0] slower than base (8 pairs, p = 1.0000); a slowdown of 2 "
            "% is excluded");
  EXPECT_THAT(verdict_sentence(failed_record()), StartsWith("no verdict (failed): new, pair 1"));
}

TEST(VerdictReport, NamesWhatChangedBetweenTheSides) {
  Verdict record = record_of(0.05);
  EXPECT_THAT(verdict_table(record), Not(HasSubstr("changed:"))) << "nothing is known of the steps";
  record::Finding& link = record.findings.emplace_back();
  link.rule = "link";
  link.what = "Exposed communication grew: link.";
  link.why = "Medians of 8.";
  link.sure = "likely";
  const std::string words = "changed: Exposed communication grew: link. (likely) Medians of 8.\n";
  EXPECT_THAT(verdict_table(record), HasSubstr("\n" + words));
  EXPECT_THAT(verdict_markdown(record), HasSubstr("- " + words));
}

TEST(VerdictReport, TheTableNamesPointsNotesAndWarnings) {
  const std::string table = verdict_table(record_of(0.05));
  EXPECT_THAT(table,
              HasSubstr("ranks=1  100.0  95.0  images/sec  5.0 % slower        0.0039  regressed"));
  EXPECT_THAT(table, HasSubstr("note: a note\nwarning: a warning\n"));
  EXPECT_THAT(verdict_table(failed_record()), HasSubstr("1 of at most 40 launches"));
}

TEST(VerdictReport, MarkdownHasTheSame) {
  const std::string text = verdict_markdown(record_of(0.05));
  EXPECT_THAT(text, StartsWith("**scalemark gate: regressed: new is 5.0 %"));
  EXPECT_THAT(text, HasSubstr("| ranks=1 | 100.0 | 95.0 | images/sec | 5.0 % slower | 0.0039 | "
                              "regressed |"));
}

TEST(VerdictReport, JUnitCountsAndEscapes) {
  EXPECT_THAT(verdict_junit(record_of(0.05)), HasSubstr(R"(tests="2" failures="2" errors="0")"));
  EXPECT_THAT(verdict_junit(record_of(0)), HasSubstr(R"(tests="2" failures="0" errors="0")"));
  Verdict open = record_of(0);
  open.verdict = GateVerdict::inconclusive;
  EXPECT_THAT(verdict_junit(open), HasSubstr(R"(failures="0" errors="0" skipped="2")"));
  EXPECT_THAT(verdict_junit(record_of(0)), HasSubstr("<system-out>"));
  const std::string failed = verdict_junit(failed_record());
  EXPECT_THAT(failed, HasSubstr("killed &lt;by&gt; &quot;signal&quot;"));
  EXPECT_THAT(failed, HasSubstr(R"(tests="1" failures="0" errors="1")"));
}

/// What a label, a unit or a reason may hold when records come from elsewhere.
TEST(VerdictReport, TextOfRecordsBreaksNothing) {
  const std::string evil = "n\x1b[2J\n::error::x|<b>\xef\xbf\xbe&";
  const Verdict record = record_of(0.05, evil);
  EXPECT_EQ(verdict_table(record).find('\x1b'), std::string::npos);
  EXPECT_THAT(verdict_table(record), Not(HasSubstr("\n::error")));
  EXPECT_THAT(verdict_markdown(record), HasSubstr("x\\|&lt;b&gt;"));
  EXPECT_THAT(verdict_junit(record), HasSubstr("x|&lt;b&gt;"));
  EXPECT_EQ(verdict_junit(record).find("\xef\xbf\xbe"), std::string::npos);
  const std::string annotation = verdict_annotation(record);
  EXPECT_EQ(annotation.find("\n::error", 1), std::string::npos);
  EXPECT_EQ(annotation.find('\x1b'), std::string::npos);
}

TEST(VerdictReport, InconclusiveSaysHowManyRepeatsWouldDo) {
  const std::vector<double> base{100, 107, 95, 103, 98, 104, 96, 101};
  const std::vector<double> fresh{97, 99, 104, 95, 106, 98, 103, 96};
  const std::vector<ResultSet> sets{test::swept(test::rates("base", base)),
                                    test::swept(test::rates("new", fresh))};
  const Matching matching = match_sets(sets, {});
  const Verdict record = make_verdict({sets, matching, {}, {}, {}, std::nullopt, nullptr},
                                      judge(sets, matching, GateMode::pairs, {}));
  EXPECT_EQ(record.verdict, GateVerdict::inconclusive);
  EXPECT_GT(*record.repeats_for_pass, 20U);
  EXPECT_THAT(verdict_sentence(record),
              HasSubstr("to exclude 2 % at this noise takes about " +
                        std::to_string(*record.repeats_for_pass) + " pairs"));
}

TEST(VerdictReport, EnoughRepeatsAreNotAskedForAgain) {
  Verdict record = record_of(0);
  record.verdict = GateVerdict::inconclusive;
  record.repeats_for_pass = 8;
  record.detectable_percent = 0.03;
  const std::string text = verdict_sentence(record);
  EXPECT_THAT(text, Not(HasSubstr("takes about")));
  EXPECT_THAT(text, HasSubstr("at this noise 8 pairs exclude 2 % where there is no difference"));
  EXPECT_THAT(text, HasSubstr("found would be 0.03 % or more"));
}

TEST(VerdictReport, TellsOfLossesThatDiverged) {
  std::vector<ResultSet> sets{test::swept(test::rates("base", std::vector<double>(8, 100))),
                              test::swept(test::rates("new", std::vector<double>(8, 100)))};
  const Matching matching = match_sets(sets, {});
  const auto record = [&] {
    return make_verdict({sets, matching, {}, {}, {}, std::nullopt, nullptr},
                        judge(sets, matching, GateMode::pairs, {}));
  };
  EXPECT_THAT(verdict_table(record()), Not(HasSubstr("diverged")));
  sets[1].launches[2].diverged = sets[1].launches[5].diverged = true;
  EXPECT_THAT(verdict_table(record()), HasSubstr("the loss diverged in 2 of 8 launches of new"));
}

TEST(VerdictReport, AnnotationsAreOneLine) {
  const std::string text = verdict_annotation(record_of(0.05, "50%\nnew"));
  EXPECT_THAT(text, StartsWith("::error title=scalemark gate::regressed: 50%25 new is 5.0 %25 "));
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_THAT(verdict_annotation(record_of(0)), StartsWith("::notice "));
  EXPECT_THAT(verdict_annotation(failed_record()), StartsWith("::error "));
}

}  // namespace
}  // namespace scalemark::verdict_report_test
